#include "codec/magnitude.h"

#include <algorithm>
#include <bit>

namespace motley::codec {

std::int32_t largest_magnitude_bits(std::span<const float> values) {
  std::int32_t largest = 0;
  for (const float x : values) largest = std::max(largest, std::bit_cast<std::int32_t>(x) & magnitude_mask);
  return largest;
}

}  // namespace motley::codec
