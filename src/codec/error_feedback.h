// Error feedback around any codec: what rounding lost now is added to what is sent next, so that nothing is lost for ever.
// After 1-bit SGD and EF-SGD. Belongs to the sender; the receiver decodes with the bare codec.
#pragma once
#include "codec/codec.h"

namespace motley::codec {

/// What one encoding wanted to send and what it kept back, squared and summed; both 0 for a vector that is not finite.
struct Kept {
  double squared_wanted = 0;
  double squared_residual = 0;
};

/// p = x + e;  appends encode(p) to `out`;  e = p - decode(encode(p)).   A vector that holds a NaN or an infinity leaves e as it was.
Kept encode_with_feedback(Codec& codec, std::span<const float> x, std::span<float> residual, Bytes& out);

/// For one stream of vectors of `values` values:   p = x + e;  q = decode(encode(p));  e = p - q
/// A vector that holds a NaN or an infinity is encoded as the inner codec does it and leaves e as it was.
class ErrorFeedback final : public Codec {
 public:
  ErrorFeedback(std::unique_ptr<Codec> inner, std::size_t values);

  [[nodiscard]] std::size_t encoded_bytes(std::size_t values) const override { return inner_->encoded_bytes(values); }
  /// `values` has the size given at construction.
  void encode(std::span<const float> values, Bytes& out) override;
  Outcome decode(std::span<const std::byte> bytes, std::span<float> out) const override { return inner_->decode(bytes, out); }

  /// e: what has been lost so far and not yet sent.
  [[nodiscard]] std::span<const float> residual() const { return residual_; }
  /// e *= factor. When the learning rate steps, the factor is old rate / new rate: e was lost at the old one.
  void scale_residual(double factor);

 private:
  std::unique_ptr<Codec> inner_;
  std::vector<float> residual_;  // e
};

}  // namespace motley::codec
