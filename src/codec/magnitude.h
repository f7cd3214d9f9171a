// |x| as the integer its bits are: magnitudes order as integers, infinity above every number, NaN above infinity.
// So one integer maximum finds the largest value of a block and tells whether all of it is finite.
#pragma once
#include <cstdint>
#include <span>

#include "codec/format.h"
#include "codec/kernels.h"

namespace motley::codec {

/// The bits of the largest |x|; 0 for no values. Branch-free, one pass.
[[nodiscard]] inline std::int32_t largest_magnitude_bits(std::span<const float> values) {
  return best_kernels().largest_magnitude_bits(values.data(), values.size());
}

/// No NaN and no infinity among them.
[[nodiscard]] inline bool all_finite(std::span<const float> values) { return largest_magnitude_bits(values) < infinity_bits; }

}  // namespace motley::codec
