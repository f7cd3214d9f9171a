#include "codec/fp32.h"

#include <algorithm>

namespace motley::codec {

void Fp32::encode(std::span<const float> values, Bytes& out) {
  const auto bytes = std::as_bytes(values);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

Outcome Fp32::decode(std::span<const std::byte> bytes, std::span<float> out) const {
  Outcome size = require_size(bytes, out.size());
  if (size.ok()) std::copy(bytes.begin(), bytes.end(), std::as_writable_bytes(out).begin());
  return size;
}

}  // namespace motley::codec
