#include "codec/bf16.h"

#include <bit>

namespace motley::codec {

void Bf16::encode_into(std::span<const float> values, std::span<std::byte> out) const {
  check_output_size(values.size(), out);
  kernels_->bf16.encode(values.data(), values.size(), out.data());
}

Outcome Bf16::decode(std::span<const std::byte> bytes, std::span<float> out) const {
  Outcome size = require_size(bytes, out.size());
  if (size.ok()) kernels_->bf16.decode(bytes.data(), out.size(), out.data());
  return size;
}

bool Bf16::all_below(float limit, std::span<const std::byte> bytes, std::size_t values) const {
  return kernels_->largest_bf16_bits(bytes.data(), values) < std::bit_cast<std::int32_t>(limit);
}

}  // namespace motley::codec
