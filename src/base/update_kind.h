// How the sum of contributions changes the parameters: chosen by the chief, applied by the store.
#pragma once
#include <boost/describe.hpp>
#include <cstdint>

namespace motley {

enum class UpdateKind : std::uint8_t {
  gradient,        // parameters: g = sum weight*part, then the optimizer; statistics: s += sum weight*part
  delta,           // all values: w += sum weight*part
  bypass_momentum  // as gradient, without the optimizer's momentum, which stays unchanged
};
BOOST_DESCRIBE_ENUM(UpdateKind, gradient, delta, bypass_momentum)

}  // namespace motley
