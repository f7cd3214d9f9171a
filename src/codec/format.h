// The numbers of the formats that bits.h and bf16.h draw, for all who write or read them. Constants only: this is included by files that
// are compiled for one kind of processor, where an inline function could end up in the program for all of them.
#pragma once
#include <cstddef>
#include <cstdint>

namespace motley::codec {

// |x| as the integer its bits are (magnitude.h).
inline constexpr std::int32_t magnitude_mask = 0x7fffffff;
inline constexpr std::int32_t infinity_bits = 0x7f800000;

inline constexpr std::int32_t largest_bf16 = 0x7f7f;
inline constexpr std::int32_t quiet_nan_bit = 0x0040;  // keeps a NaN a NaN when its low half is cut off

inline constexpr std::size_t block_values = 256;
inline constexpr std::size_t scale_bytes = 2;
inline constexpr std::uint16_t poisoned = 0x7fc0;  // a NaN as scale: something in the block is not finite

/// Of a block of `bits` a value.
template <int bits>
inline constexpr int levels = (1 << (bits - 1)) - 1;
template <int bits>
inline constexpr std::size_t codes_per_byte = 8 / bits;
template <int bits>
inline constexpr std::size_t whole_block_bytes = scale_bytes + block_values / codes_per_byte<bits>;

}  // namespace motley::codec
