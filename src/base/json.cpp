// Boost.JSON's own code, compiled once, for every module above. Nothing else may live in this file.
#include <boost/json/src.hpp>
