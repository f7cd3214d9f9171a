#include "learn/torch/bf16_sender.h"

#include "base/bits.h"

namespace motley::learn {

namespace {

bool sent_as_bf16(const GradientEncoding::Slice& slice) { return slice.bits == bf16_bits; }

}  // namespace

void Bf16Sender::begin(DeviceModel& model, const GradientEncoding* encoding) {
  encoding_ = encoding != nullptr && encoding->bf16_as_is ? encoding : nullptr;
  std::vector<DeviceModel::Range> rounded;
  if (encoding_ != nullptr) {
    for (const GradientEncoding::Slice& slice : encoding_->slices)
      if (sent_as_bf16(slice)) rounded.push_back({slice.first, slice.first + slice.count});
    unsent_.begin(*encoding_);
  }
  model.round_gradients(rounded);
}

void Bf16Sender::send(const DeviceModel& model, std::uint64_t first, std::uint64_t last, const at::Tensor& out) {
  for (const GradientEncoding::Slice& slice : unsent_.take(first, last)) {
    const at::Tensor& flat = sent_as_bf16(slice) ? model.rounded_gradient() : model.gradient();
    const at::Tensor bytes = part(flat, slice.first, slice.first + slice.count).view(at::kByte);
    out.narrow(0, static_cast<std::int64_t>(slice.first * sizeof(float)), bytes.numel()).copy_(bytes, /*non_blocking=*/true);
  }
}

double Bf16Sender::squared_norm_of_fp32(std::span<const float> parameters) const {
  double sum = 0;
  if (encoding_ == nullptr) return sum;
  for (const GradientEncoding::Slice& slice : encoding_->slices) {
    if (sent_as_bf16(slice) || slice.first >= parameters.size()) continue;
    for (const float each : parameters.subspan(slice.first, slice.count)) sum += static_cast<double>(each) * each;
  }
  return sum;
}

}  // namespace motley::learn
