#include "learn/torch/received_values.h"

namespace motley::learn {

ReceivedValues::ReceivedValues(const DeviceModel& model)
    : model_(model), host_to_device_(model.lanes(), model.shape().values(), model.device()) {
  values_ = at::zeros_like(model.values());
  watched_ = at::zeros_like(values_);
  update_norm_ = at::zeros({1}, at::TensorOptions(at::kDouble).device(model.device()));
}

void ReceivedValues::receive(std::uint64_t first, std::span<const float> values) {
  host_to_device_.wait();  // the copy before this one may still read the staging buffer
  read_.hold_if_set(model_.lanes(), Lane::in);
  host_to_device_.take(first, std::as_bytes(values), values_);
  host_to_device_.join();
  if (is_pinned(std::as_bytes(values))) host_to_device_.wait();  // the copy reads the caller's memory itself
}

void ReceivedValues::watch() {
  update_norm_ = model_.squared_norm(values_ - watched_).unsqueeze(0);
  watched_.copy_(values_);
  mark_read();
}

}  // namespace motley::learn
