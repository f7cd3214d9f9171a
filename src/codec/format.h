// Constants of the formats of bits.h and bf16.h. No functions: files that are compiled for one instruction set include this header, and the
// linker might keep their version of an inline function for the whole program.
#pragma once
#include <cstddef>
#include <cstdint>

namespace motley::codec {

// |x| by the bits of x as an integer (magnitude.h).
inline constexpr std::int32_t magnitude_mask = 0x7fffffff;
inline constexpr std::int32_t infinity_bits = 0x7f800000;

inline constexpr std::int32_t largest_bf16 = 0x7f7f;
inline constexpr std::int32_t quiet_nan_bit = 0x0040;  // keeps a NaN a NaN when its lower 16 bits are removed

inline constexpr std::size_t block_values = 256;
inline constexpr std::size_t scale_bytes = 2;
inline constexpr std::uint16_t poisoned = 0x7fc0;  // a NaN as scale: something in the block is not finite

/// Of a block with `bits` bits per value.
template <int bits>
inline constexpr int levels = (1 << (bits - 1)) - 1;
template <int bits>
inline constexpr std::size_t codes_per_byte = 8 / bits;
template <int bits>
inline constexpr std::size_t whole_block_bytes = scale_bytes + block_values / codes_per_byte<bits>;

}  // namespace motley::codec
