// Boost.JSON's own code, compiled once, for this room and every room above it that links it. Nothing else may live in this file.
#include <boost/json/src.hpp>
