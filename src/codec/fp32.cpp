#include "codec/fp32.h"

#include <algorithm>
#include <bit>

namespace motley::codec {

void Fp32::encode_into(std::span<const float> values, std::span<std::byte> out) const {
  check_output_size(values.size(), out);
  const auto bytes = std::as_bytes(values);
  std::copy(bytes.begin(), bytes.end(), out.begin());
}

Outcome Fp32::decode(std::span<const std::byte> bytes, std::span<float> out) const {
  Outcome size = require_size(bytes, out.size());
  if (size.ok()) std::copy(bytes.begin(), bytes.end(), std::as_writable_bytes(out).begin());
  return size;
}

bool Fp32::all_below(float limit, std::span<const std::byte> bytes, std::size_t values) const {
  return best_kernels().largest_magnitude_bits(reinterpret_cast<const float*>(bytes.data()), values) < std::bit_cast<std::int32_t>(limit);
}

}  // namespace motley::codec
