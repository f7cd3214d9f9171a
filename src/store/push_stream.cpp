#include "store/push_stream.h"

#include <cmath>

#include "base/check.h"
#include "codec/magnitude.h"

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
  check(flat.size() == layout_.values, "a contribution is as large as the model");
  auto& codec = codecs_[slice.bits(bits)];
  if (!codec) codec = codec::make(slice.bits(bits)).value();
  residual_.resize(layout_.values);
  wanted_.resize(slice.count);
  sent_.resize(slice.count);
  float* const kept = residual_.data() + slice.offset;
  const float* const values = flat.data() + slice.offset;
  for (std::size_t i = 0; i < slice.count; ++i) wanted_[i] = values[i] + kept[i];
  const std::size_t start = out.size();
  codec->encode(wanted_, out);
  if (!codec::all_finite(wanted_)) return;  // it will be refused; what was kept back stays
  const bool decoded = codec->decode(std::span(out).subspan(start), sent_).ok();
  check(decoded, "a codec decodes what it encoded");
  for (std::size_t i = 0; i < slice.count; ++i) {
    kept[i] = wanted_[i] - sent_[i];
    squared_wanted_ += static_cast<double>(wanted_[i]) * wanted_[i];
    squared_residual_ += static_cast<double>(kept[i]) * kept[i];
  }
}

double PushStream::residual_ratio() const { return squared_wanted_ > 0 ? std::sqrt(squared_residual_ / squared_wanted_) : 0; }

}  // namespace motley::store
