// What the sum of contributions does to the model: said on the wire, done in the store.
#pragma once
#include <boost/describe.hpp>
#include <cstdint>

namespace motley {

enum class UpdateKind : std::uint8_t {
  gradient,        // parameters: g = sum weight*part, then the optimizer's rule; statistics: s += sum weight*part
  delta,           // everything: w += sum weight*part
  bypass_momentum  // as gradient, but past the optimizer's momentum, which stays as it is
};
BOOST_DESCRIBE_ENUM(UpdateKind, gradient, delta, bypass_momentum)

}  // namespace motley
