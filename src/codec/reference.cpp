// The loops in plain C++: the fallback on processors without a target of their own, and the expected result in tests of the other targets.
// Written so that a compiler vectorises them for the baseline instruction set.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "codec/format.h"
#include "codec/kernels.h"

namespace motley::codec {
namespace {

using Codes = std::array<std::uint8_t, block_values>;
using Floats = std::array<float, block_values>;

std::int32_t largest_magnitude_bits(const float* values, std::size_t n) {
  std::int32_t largest = 0;
  for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, std::bit_cast<std::int32_t>(values[i]) & magnitude_mask);
  return largest;
}

std::int32_t largest_bf16_bits(const std::byte* bf16_values, std::size_t n) {
  std::int16_t largest = 0;  // signed: the baseline vector instructions have no other maximum
  for (std::size_t i = 0; i < n; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, bf16_values + 2 * i, sizeof(bits));
    largest = std::max(largest, static_cast<std::int16_t>(bits & 0x7fffU));
  }
  return static_cast<std::int32_t>(largest) << 16;
}

std::uint16_t scale_of(const float* block, std::size_t n) {
  const std::int32_t bits = largest_magnitude_bits(block, n);
  if (bits >= infinity_bits) return poisoned;
  // The largest bf16 is below the largest float by less than half a step, so every value still rounds to a level.
  return static_cast<std::uint16_t>(std::min((bits + 0xffff) >> 16, largest_bf16));
}

float widened(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

/// For |x| < 2^22, ties to even: adding 1.5 * 2^23 leaves the integer in the low bits of the float. The baseline vector instructions
/// lack rounding but have addition.
inline std::int32_t nearest_integer(float x) {
  constexpr float shift = 12582912.0F;
  return std::bit_cast<std::int32_t>(x + shift) - std::bit_cast<std::int32_t>(shift);
}

template <int b>
struct Blocks {
  static constexpr std::size_t per_byte = codes_per_byte<b>;
  static constexpr std::uint8_t mask = (1 << b) - 1;

  static constexpr std::size_t stride(std::size_t length) { return (length + per_byte - 1) / per_byte; }

  /// Dividing by the scale first keeps every intermediate in range, from the smallest denormal to the largest float.
  static void quantize(const float* __restrict x, std::size_t n, float scale, Codes& codes) {
    const float divisor = scale == 0 ? 1 : scale;
    std::uint8_t* __restrict code = codes.data();
    for (std::size_t i = 0; i < n; ++i) {
      const std::int32_t level = nearest_integer(x[i] / divisor * static_cast<float>(levels<b>));
      code[i] = static_cast<std::uint8_t>(level + levels<b>);
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
        const int level = ((packed[j] >> (k * b)) & mask) - levels<b>;
        values[k * stride + j] = static_cast<float>(level) / static_cast<float>(levels<b>) * scale;
      }
  }

  static void encode_block(const float* values, std::size_t n, std::byte* out) {
    const std::uint16_t scale = scale_of(values, n);
    Codes codes{};
    Codes packed;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled below, and this is hot
    if (scale != poisoned) quantize(values, n, widened(scale), codes);
    pack(codes, packed.data(), stride(n));
    std::memcpy(out, &scale, scale_bytes);
    std::memcpy(out + scale_bytes, packed.data(), stride(n));
  }

  static void decode_block(const std::byte* bytes, std::size_t n, float* out) {
    std::uint16_t scale = 0;
    Codes packed;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled below, and this is hot
    Floats values;
    std::memcpy(&scale, bytes, scale_bytes);
    std::memcpy(packed.data(), bytes + scale_bytes, stride(n));
    unpack(packed.data(), stride(n), widened(scale), values);
    std::copy_n(values.begin(), n, out);
  }

  static void encode(const float* values, std::size_t n, std::byte* out) {
    for (std::size_t i = 0; i < n; i += block_values, out += whole_block_bytes<b>)
      encode_block(values + i, std::min(block_values, n - i), out);
  }

  static void decode(const std::byte* bytes, std::size_t n, float* out) {
    for (std::size_t i = 0; i < n; i += block_values, bytes += whole_block_bytes<b>)
      decode_block(bytes, std::min(block_values, n - i), out + i);
  }

  static constexpr EncodeDecode coding{encode, decode};
};

/// Signed integers and selects instead of branches, because the baseline vector instructions have these.
inline std::uint16_t rounded(float x) {
  const auto bits = std::bit_cast<std::int32_t>(x);
  const std::int32_t magnitude = bits & magnitude_mask;
  const std::int32_t upper = magnitude >> 16;
  const std::int32_t nearest = (magnitude + (magnitude < infinity_bits ? 0x7fff + (upper & 1) : 0)) >> 16;
  const std::int32_t finite = std::min(nearest, largest_bf16);
  const std::int32_t not_finite = magnitude > infinity_bits ? upper | quiet_nan_bit : upper;
  const std::int32_t sign = (bits >> 16) & 0x8000;
  return static_cast<std::uint16_t>((magnitude < infinity_bits ? finite : not_finite) | sign);
}

void encode_bf16(const float* values, std::size_t n, std::byte* out) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint16_t bits = rounded(values[i]);
    std::memcpy(out + 2 * i, &bits, 2);
  }
}

void decode_bf16(const std::byte* bytes, std::size_t n, float* out) {
  for (std::size_t i = 0; i < n; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, bytes + 2 * i, 2);
    out[i] = widened(bits);
  }
}

void add(const float* a, const float* b, std::size_t n, float* sum) {
  for (std::size_t i = 0; i < n; ++i) sum[i] = a[i] + b[i];
}

void keep_residual(const float* wanted, const float* sent, std::size_t n, float* residual, SquareSums& sums) {
  for (std::size_t i = 0; i < n; ++i) {
    const double p = wanted[i];
    const double e = residual[i] = wanted[i] - sent[i];
    sums.wanted[i % SquareSums::width] += p * p;
    sums.residual[i % SquareSums::width] += e * e;
  }
}

}  // namespace

constinit const Kernels reference_kernels{.bits2 = Blocks<2>::coding,
                                          .bits4 = Blocks<4>::coding,
                                          .bits8 = Blocks<8>::coding,
                                          .bf16 = {encode_bf16, decode_bf16},
                                          .largest_magnitude_bits = largest_magnitude_bits,
                                          .largest_bf16_bits = largest_bf16_bits,
                                          .add = add,
                                          .keep_residual = keep_residual};

}  // namespace motley::codec
