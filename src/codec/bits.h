// Codecs of 2, 4 and 8 bits per value: blocks of 256 values share a scale, each value becomes the nearest of 2*levels + 1 even steps in
// [-scale, scale]. Deterministic; error feedback keeps what rounding loses. After 1-bit SGD, QSGD and block quantization.
#pragma once
#include "codec/codec.h"

namespace motley::codec {

/// b in {2, 4, 8}; levels = 2^(b-1) - 1: 1, 7, 127.
///
///   block := scale:bf16 codes        m <= 256 values; only the last block may be shorter
///   codes := s = ceil(m*b/8) bytes; byte j holds the codes of values j, j+s, j+2s, ... from its low bits up (so that packing
///            needs whole vectors only); a code is levels + round(x/scale * levels), ties to even; unused places are 0
///
/// b bits: ceil(n*b/8) + 2*ceil(n/256) bytes.
/// scale: the largest |x| of the block, rounded up to bfloat16 (at most 2^-7 of it).
/// Error: |x - q| <= scale/(2*levels) * (1 + 2^-14) + 2^-149. Zeros stay zero.
/// A block that holds a NaN or an infinity has a NaN as scale, codes 0, and decodes to NaN throughout. The one unused code decodes to scale
/// * (levels+1)/levels.
class Bits final : public Codec {
 public:
  explicit Bits(int bits, const Kernels& kernels = best_kernels());
  [[nodiscard]] std::size_t encoded_bytes(std::size_t values) const override;
  void encode_into(std::span<const float> values, std::span<std::byte> out) const override;
  Outcome decode(std::span<const std::byte> bytes, std::span<float> out) const override;
  [[nodiscard]] bool all_below(float limit, std::span<const std::byte> bytes, std::size_t values) const override;

 private:
  int bits_;
  EncodeDecode loops_;
};

}  // namespace motley::codec
