// The newest parameters and statistics that local steps have received from the servers, on the device.
#pragma once
#include <ATen/ATen.h>

#include <cstdint>
#include <span>

#include "learn/torch/device_model.h"
#include "learn/torch/pinned.h"

namespace motley::learn {

/// Keeps a reference to the model. Call with the compute lane as the current one.
class ReceivedValues {
 public:
  explicit ReceivedValues(const DeviceModel& model);
  /// Copies `values` to [first, first + size) of values(). The compute lane sees them from its next operation on; the caller's memory may
  /// change when this returns.
  void receive(std::uint64_t first, std::span<const float> values);
  /// Flat, on the device.
  [[nodiscard]] const at::Tensor& values() const { return values_; }
  /// Call after the compute lane was asked to read values(), before the next receive().
  void mark_read() { read_.set(model_.lanes(), Lane::compute); }
  /// All ranges received since the last call form a whole model: update_norm() becomes the squared distance between its parameters and
  /// those of the model at the last call.
  void watch();
  /// One double on the device.
  [[nodiscard]] const at::Tensor& update_norm() const { return update_norm_; }

 private:
  const DeviceModel& model_;
  HostToDevice host_to_device_;
  at::Tensor values_, watched_;  // flat
  at::Tensor update_norm_;
  Mark read_;  // by the compute lane
};

}  // namespace motley::learn
