// Codec of fp32: the bits of each float unchanged, NaN and infinity included.
#pragma once
#include "codec/codec.h"

namespace motley::codec {

/// 4n bytes. Error: none.
class Fp32 final : public Codec {
 public:
  [[nodiscard]] std::size_t encoded_bytes(std::size_t values) const override { return values * sizeof(float); }
  void encode_into(std::span<const float> values, std::span<std::byte> out) const override;
  Outcome decode(std::span<const std::byte> bytes, std::span<float> out) const override;
  [[nodiscard]] bool all_below(float limit, std::span<const std::byte> bytes, std::size_t values) const override;
};

}  // namespace motley::codec
