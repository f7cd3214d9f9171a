// Compares |x| by the bits of x as an integer: magnitudes are ordered as integers, infinity is above every number, NaN above infinity.
// So one integer maximum finds the largest magnitude and whether all values are finite.
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

/// True if no value is NaN or infinite.
[[nodiscard]] inline bool all_finite(std::span<const float> values) { return largest_magnitude_bits(values) < infinity_bits; }

}  // namespace motley::codec
