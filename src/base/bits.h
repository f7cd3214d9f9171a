// How many bits a value takes, where the number has a name.
#pragma once
#include <cstdint>

namespace motley {

inline constexpr std::uint8_t fp32_bits = 32;  // a float as it lies in memory
inline constexpr std::uint8_t bf16_bits = 16;  // its upper half: all there is to it where the lower one is 0

}  // namespace motley
