#include "learn/torch/as_made.h"

#include "base/bits.h"

namespace motley::learn {

namespace {

bool in_halves(const Coding::Slice& slice) { return slice.bits == half_bits; }

}  // namespace

void AsMade::begin(DeviceModel& model, const Coding* coding) {
  coding_ = coding != nullptr && coding->as_made ? coding : nullptr;
  std::vector<DeviceModel::Range> rounded;
  if (coding_ != nullptr) {
    for (const Coding::Slice& slice : coding_->slices)
      if (in_halves(slice)) rounded.push_back({slice.first, slice.first + slice.count});
    left_.begin(*coding_);
  }
  model.round_gradients(rounded);
}

void AsMade::send(const DeviceModel& model, std::uint64_t first, std::uint64_t last, const at::Tensor& out) {
  for (const Coding::Slice& slice : left_.take(first, last)) {
    const at::Tensor& flat = in_halves(slice) ? model.rounded_gradient() : model.gradient();
    const at::Tensor bytes = part(flat, slice.first, slice.first + slice.count).view(at::kByte);
    out.narrow(0, static_cast<std::int64_t>(slice.first * sizeof(float)), bytes.numel()).copy_(bytes, /*non_blocking=*/true);
  }
}

double AsMade::squares_in_floats(std::span<const float> parameters) const {
  double sum = 0;
  if (coding_ == nullptr) return sum;
  for (const Coding::Slice& slice : coding_->slices) {
    if (in_halves(slice) || slice.first >= parameters.size()) continue;
    for (const float each : parameters.subspan(slice.first, slice.count)) sum += static_cast<double>(each) * each;
  }
  return sum;
}

}  // namespace motley::learn
