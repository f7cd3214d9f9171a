#include "codec/bf16.h"

namespace motley::codec {

void Bf16::encode_into(std::span<const float> values, std::span<std::byte> out) const {
  check_room(values.size(), out);
  loops_.encode(values.data(), values.size(), out.data());
}

Outcome Bf16::decode(std::span<const std::byte> bytes, std::span<float> out) const {
  Outcome size = require_size(bytes, out.size());
  if (size.ok()) loops_.decode(bytes.data(), out.size(), out.data());
  return size;
}

}  // namespace motley::codec
