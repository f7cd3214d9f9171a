#include "codec/error_feedback.h"

#include "base/check.h"
#include "codec/magnitude.h"

namespace motley::codec {

ErrorFeedback::ErrorFeedback(std::unique_ptr<Codec> inner, std::size_t values)
    : inner_(std::move(inner)), residual_(values), wanted_(values), sent_(values) {}

void ErrorFeedback::encode(std::span<const float> values, Bytes& out) {
  const std::size_t n = residual_.size();
  check(values.size() == n, "error feedback sees vectors of one size");
  for (std::size_t i = 0; i < n; ++i) wanted_[i] = values[i] + residual_[i];

  const std::size_t start = out.size();
  inner_->encode(wanted_, out);
  if (!all_finite(wanted_)) return;

  const bool decoded = inner_->decode(std::span(out).subspan(start), sent_).ok();
  check(decoded, "a codec decodes what it encoded");
  for (std::size_t i = 0; i < n; ++i) residual_[i] = wanted_[i] - sent_[i];
}

void ErrorFeedback::scale_residual(double factor) {
  const auto by = static_cast<float>(factor);
  for (float& e : residual_) e *= by;
}

}  // namespace motley::codec
