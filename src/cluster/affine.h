// The time of a step as an affine function of its batch size.
#pragma once
#include <boost/describe.hpp>

namespace motley::cluster {

/// t(b) = fixed + per_sample * b: seconds that a device takes for a step of b samples.
struct Affine {
  double fixed = 0;
  double per_sample = 0;
  [[nodiscard]] double at(double samples) const { return fixed + per_sample * samples; }
};
BOOST_DESCRIBE_STRUCT(Affine, (), (fixed, per_sample))

}  // namespace motley::cluster
