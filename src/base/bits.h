// Bits per value of the formats that have a name.
#pragma once
#include <cstdint>

namespace motley {

inline constexpr std::uint8_t fp32_bits = 32;  // a float in memory
inline constexpr std::uint8_t bf16_bits = 16;  // the upper half of a float; exact where the lower half is 0

}  // namespace motley
