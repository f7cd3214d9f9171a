// Codec of bfloat16: the upper 16 bits of a float, rounded to nearest, ties to even.
#pragma once
#include "codec/codec.h"

namespace motley::codec {

/// 2n bytes. Error: |x - q| <= |x| * 2^-8 for normal x, 2^-134 below. A value that would round to infinity becomes the largest
/// bfloat16, so that finite values stay finite; infinities and NaNs are kept. Stateless: any number of threads may use one.
class Bf16 final : public Codec {
 public:
  explicit Bf16(const Kernels& kernels = best_kernels()) : kernels_(&kernels) {}
  [[nodiscard]] std::size_t encoded_bytes(std::size_t values) const override { return values * 2; }
  void encode_into(std::span<const float> values, std::span<std::byte> out) const override;
  Outcome decode(std::span<const std::byte> bytes, std::span<float> out) const override;
  [[nodiscard]] bool all_below(float limit, std::span<const std::byte> bytes, std::size_t values) const override;

 private:
  const Kernels* kernels_;
};

}  // namespace motley::codec
