#include "codec/bits.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "codec/format.h"

namespace motley::codec {
namespace {

constexpr std::size_t up(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

const EncodeDecode& loops_of(int bits, const Kernels& kernels) {
  check(bits == 2 || bits == 4 || bits == 8, "a block codec has 2, 4 or 8 bits per value");
  return bits == 2 ? kernels.bits2 : bits == 4 ? kernels.bits4 : kernels.bits8;
}

}  // namespace

Bits::Bits(int bits, const Kernels& kernels) : bits_(bits), loops_(loops_of(bits, kernels)) {}

std::size_t Bits::encoded_bytes(std::size_t values) const {
  return up(values * static_cast<std::size_t>(bits_), 8) + scale_bytes * up(values, block_values);
}

void Bits::encode_into(std::span<const float> values, std::span<std::byte> out) const {
  check_output_size(values.size(), out);
  loops_.encode(values.data(), values.size(), out.data());
}

Outcome Bits::decode(std::span<const std::byte> bytes, std::span<float> out) const {
  Outcome size = require_size(bytes, out.size());
  if (size.ok()) loops_.decode(bytes.data(), out.size(), out.data());
  return size;
}

bool Bits::all_below(float limit, std::span<const std::byte> bytes, std::size_t values) const {
  const std::size_t whole_block = scale_bytes + up(block_values * static_cast<std::size_t>(bits_), 8);
  const auto limit_bits = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(limit / 2) >> 16);
  std::uint16_t largest = 0;
  for (std::size_t block = 0; block < up(values, block_values); ++block) {
    std::uint16_t scale = 0;
    std::memcpy(&scale, bytes.data() + block * whole_block, sizeof(scale));
    largest = std::max(largest, static_cast<std::uint16_t>(scale & 0x7fffU));
  }
  return largest < limit_bits;
}

}  // namespace motley::codec
