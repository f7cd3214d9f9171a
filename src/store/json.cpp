// Boost.JSON's own code, compiled here for this room. Nothing else may live in this file: the linker then takes one copy per program.
#include <boost/json/src.hpp>
