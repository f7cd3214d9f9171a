#include "codec/bf16.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "codec/magnitude.h"

namespace motley::codec {
namespace {

constexpr std::int32_t largest_bf16 = 0x7f7f;
constexpr std::int32_t quiet_nan_bit = 0x0040;  // keeps a NaN a NaN when its low half is cut off

/// Signed integers and selects instead of branches: that is what the baseline vector instructions have.
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

}  // namespace

void Bf16::encode(std::span<const float> values, Bytes& out) {
  const std::size_t start = out.size();
  out.resize(start + encoded_bytes(values.size()));
  std::byte* const to = out.data() + start;
  const float* const from = values.data();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t half = rounded(from[i]);
    std::memcpy(to + 2 * i, &half, 2);
  }
}

Outcome Bf16::decode(std::span<const std::byte> bytes, std::span<float> out) const {
  Outcome size = require_size(bytes, out.size());
  if (!size.ok()) return size;
  const std::byte* const from = bytes.data();
  float* const to = out.data();
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, from + 2 * i, 2);
    to[i] = std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
  }
  return Done{};
}

}  // namespace motley::codec
