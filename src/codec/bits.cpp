#include "codec/bits.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "codec/magnitude.h"

namespace motley::codec {
namespace {

constexpr std::size_t block_values = 256;
constexpr std::size_t scale_bytes = 2;

constexpr std::size_t up(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

using Codes = std::array<std::uint8_t, block_values>;
using Floats = std::array<float, block_values>;

constexpr std::uint16_t poisoned = 0x7fc0;  // a NaN as scale: something in the block is not finite

std::uint16_t scale_of(std::span<const float> block) {
  constexpr std::int32_t largest = 0x7f7f;  // short of the largest float by less than half a step, so that still nothing leaves the levels
  const std::int32_t bits = largest_magnitude_bits(block);
  if (bits >= infinity_bits) return poisoned;
  return static_cast<std::uint16_t>(std::min((bits + 0xffff) >> 16, largest));
}

float widened(std::uint16_t scale) { return std::bit_cast<float>(static_cast<std::uint32_t>(scale) << 16); }

/// For |x| < 2^22, ties to even: adding 1.5 * 2^23 leaves the integer in the low bits of the float. The baseline vector instructions
/// have no rounding, but they have this.
inline std::int32_t nearest_integer(float x) {
  constexpr float shift = 12582912.0F;
  return std::bit_cast<std::int32_t>(x + shift) - std::bit_cast<std::int32_t>(shift);
}

template <int b>
struct Block {
  static constexpr std::size_t per_byte = 8 / b;
  static constexpr int levels = (1 << (b - 1)) - 1;
  static constexpr std::uint8_t mask = (1 << b) - 1;

  /// Dividing by the scale first keeps every intermediate in range, from the smallest denormal to the largest float.
  static void quantize(std::span<const float> values, float scale, Codes& codes) {
    const float divisor = scale == 0 ? 1 : scale;
    const std::size_t n = values.size();
    const float* __restrict x = values.data();
    std::uint8_t* __restrict code = codes.data();
    for (std::size_t i = 0; i < n; ++i) {
      const std::int32_t level = nearest_integer(x[i] / divisor * static_cast<float>(levels));
      code[i] = static_cast<std::uint8_t>(level + levels);
    }
  }

  static void pack(const Codes& codes, std::uint8_t* out, std::size_t stride) {
    for (std::size_t j = 0; j < stride; ++j) {
      std::uint8_t byte = 0;
      for (std::size_t k = 0; k < per_byte; ++k) byte = static_cast<std::uint8_t>(byte | codes[k * stride + j] << (k * b));
      out[j] = byte;
    }
  }

  static void unpack(const std::uint8_t* packed, std::size_t stride, float scale, Floats& values) {
    for (std::size_t k = 0; k < per_byte; ++k)
      for (std::size_t j = 0; j < stride; ++j) {
        const int level = ((packed[j] >> (k * b)) & mask) - levels;
        values[k * stride + j] = static_cast<float>(level) / static_cast<float>(levels) * scale;
      }
  }
};

template <int b>
void encode_block(std::span<const float> values, std::byte* out) {
  const std::size_t stride = up(values.size(), Block<b>::per_byte);
  const std::uint16_t scale = scale_of(values);
  Codes codes{};
  std::array<std::uint8_t, block_values> packed;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled below, and this is hot
  if (scale != poisoned) Block<b>::quantize(values, widened(scale), codes);
  Block<b>::pack(codes, packed.data(), stride);
  std::memcpy(out, &scale, scale_bytes);
  std::memcpy(out + scale_bytes, packed.data(), stride);
}

template <int b>
void decode_block(const std::byte* bytes, std::span<float> out) {
  const std::size_t stride = up(out.size(), Block<b>::per_byte);
  std::uint16_t scale = 0;
  std::array<std::uint8_t, block_values> packed;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled below, and this is hot
  Floats values;
  std::memcpy(&scale, bytes, scale_bytes);
  std::memcpy(packed.data(), bytes + scale_bytes, stride);
  Block<b>::unpack(packed.data(), stride, widened(scale), values);
  std::copy_n(values.begin(), out.size(), out.begin());
}

/// Calls `each(begin, length, bytes before)` for every block of n values.
template <class Each>
void for_blocks(std::size_t n, std::size_t block_bytes, Each each) {
  for (std::size_t begin = 0; begin < n; begin += block_values)
    each(begin, std::min(block_values, n - begin), begin / block_values * block_bytes);
}

template <class Call>
void with_bits(int bits, Call call) {
  switch (bits) {
    case 2: return call(std::integral_constant<int, 2>{});
    case 4: return call(std::integral_constant<int, 4>{});
    default: return call(std::integral_constant<int, 8>{});
  }
}

}  // namespace

Bits::Bits(int bits) : bits_(bits) { check(bits == 2 || bits == 4 || bits == 8, "a block codec has 2, 4 or 8 bits per value"); }

std::size_t Bits::encoded_bytes(std::size_t values) const {
  return up(values * static_cast<std::size_t>(bits_), 8) + scale_bytes * up(values, block_values);
}

void Bits::encode(std::span<const float> values, Bytes& out) {
  const std::size_t start = out.size();
  out.resize(start + encoded_bytes(values.size()));
  with_bits(bits_, [&](auto b) {
    for_blocks(values.size(), encoded_bytes(block_values), [&](std::size_t begin, std::size_t length, std::size_t before) {
      encode_block<b>(values.subspan(begin, length), out.data() + start + before);
    });
  });
}

Outcome Bits::decode(std::span<const std::byte> bytes, std::span<float> out) const {
  Outcome size = require_size(bytes, out.size());
  if (!size.ok()) return size;
  with_bits(bits_, [&](auto b) {
    for_blocks(out.size(), encoded_bytes(block_values), [&](std::size_t begin, std::size_t length, std::size_t before) {
      decode_block<b>(bytes.data() + before, out.subspan(begin, length));
    });
  });
  return Done{};
}

}  // namespace motley::codec
