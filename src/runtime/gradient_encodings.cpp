#include "runtime/gradient_encodings.h"

#include "base/bits.h"

namespace motley::runtime {

std::optional<GradientEncodings::Request> GradientEncodings::next(const wire::Order& order, std::uint64_t samples) {
  const bool whole = order.push_bits == fp32_bits && !has_residual_;
  if (whole && !options_.bf16_transfer) return std::nullopt;
  Request request{{}, whole ? bf16_bits : order.push_bits};
  for (const store::Slice& slice : layout_.slices) request.encoding.slices.push_back({slice.offset, slice.count, slice.bits(request.bits)});
  request.encoding.bf16_as_is = whole;
  if (whole) return request;
  request.encoding.reset_residual = !has_residual_;
  // The residual is in units of the update that left it. A delta does not scale with the rate.
  const double unit = options_.local_steps ? 0 : static_cast<double>(samples) * order.rate;
  if (unit_ > 0 && unit > 0) request.encoding.rescale = static_cast<float>(unit_ / unit);
  if (unit > 0) unit_ = unit;
  return request;
}

void GradientEncodings::encoded(const Request& request) {
  if (!request.encoding.bf16_as_is) has_residual_ = true;
}

void GradientEncodings::reset() {
  has_residual_ = false;
  unit_ = 0;
}

}  // namespace motley::runtime
