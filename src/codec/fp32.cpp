#include "codec/fp32.h"

#include <algorithm>

namespace motley::codec {

void Fp32::encode_into(std::span<const float> values, std::span<std::byte> out) const {
  check_room(values.size(), out);
  const auto bytes = std::as_bytes(values);
  std::copy(bytes.begin(), bytes.end(), out.begin());
}

Outcome Fp32::decode(std::span<const std::byte> bytes, std::span<float> out) const {
  Outcome size = require_size(bytes, out.size());
  if (size.ok()) std::copy(bytes.begin(), bytes.end(), std::as_writable_bytes(out).begin());
  return size;
}

}  // namespace motley::codec
