#include "store/push_stream.h"

#include <cmath>

#include "base/check.h"
#include "codec/error_feedback.h"

namespace motley::store {

void PushStream::begin(std::uint64_t samples, double rate) {
  squared_residual_ = squared_wanted_ = 0;
  const double unit = static_cast<double>(samples) * rate;
  if (unit_ > 0 && unit > 0 && unit != unit_) {
    const auto factor = static_cast<float>(unit_ / unit);
    for (float& e : residual_) e *= factor;
  }
  if (unit > 0) unit_ = unit;
}

void PushStream::encode(SliceId id, std::uint8_t bits, std::span<const float> flat, codec::Bytes& out) {
  const Slice& slice = layout_[id];
  check(flat.size() == layout_.values, "a contribution covers the whole flat buffer");
  auto& codec = codecs_[slice.bits(bits)];
  if (!codec) codec = codec::make(slice.bits(bits)).value();
  residual_.resize(layout_.values);
  has_residual_.resize(layout_.slices.size());
  const codec::FeedbackNorms kept = codec::encode_with_feedback(*codec, flat.subspan(slice.offset, slice.count),
                                                                std::span(residual_).subspan(slice.offset, slice.count), out);
  has_residual_[id.value] = kept.squared_wanted > 0 ? kept.squared_residual > 0 : has_residual(id);
  squared_wanted_ += kept.squared_wanted;
  squared_residual_ += kept.squared_residual;
}

double PushStream::residual_ratio() const { return squared_wanted_ > 0 ? std::sqrt(squared_residual_ / squared_wanted_) : 0; }

}  // namespace motley::store
