#include "codec/error_feedback.h"

#include "base/check.h"
#include "codec/magnitude.h"

namespace motley::codec {

Kept encode_with_feedback(Codec& codec, std::span<const float> x, std::span<float> residual, Bytes& out) {
  const std::size_t n = x.size();
  check(residual.size() == n, "error feedback sees vectors of one size");
  std::vector<float> wanted(n);  // p
  for (std::size_t i = 0; i < n; ++i) wanted[i] = x[i] + residual[i];

  const std::size_t start = out.size();
  codec.encode(wanted, out);
  Kept kept;
  if (!all_finite(wanted)) return kept;

  std::vector<float> sent(n);  // q
  const bool decoded = codec.decode(std::span(out).subspan(start), sent).ok();
  check(decoded, "a codec decodes what it encoded");
  for (std::size_t i = 0; i < n; ++i) {
    residual[i] = wanted[i] - sent[i];
    kept.squared_wanted += static_cast<double>(wanted[i]) * wanted[i];
    kept.squared_residual += static_cast<double>(residual[i]) * residual[i];
  }
  return kept;
}

}  // namespace motley::codec
