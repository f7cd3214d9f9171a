// Compiles Boost.JSON once for all modules. Must contain nothing else.
#include <boost/json/src.hpp>
