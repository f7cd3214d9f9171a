// Sends a gradient of which the weights' part was computed in bf16: that part leaves as bf16, the rest as fp32. Nothing is rounded, so no
// residual is kept.
#pragma once
#include <cstdint>
#include <span>

#include "base/step_io.h"
#include "learn/torch/device_model.h"
#include "learn/torch/unsent_slices.h"

namespace motley::learn {

class Bf16Sender {
 public:
  /// Before the backward pass. Active only if `encoding` asks for bf16_as_is.
  void begin(DeviceModel& model, const GradientEncoding* encoding);
  [[nodiscard]] bool active() const { return encoding_ != nullptr; }
  /// Copies the unsent slices within [first, last), on the current lane, into `out` (bytes of the host, as long as the floats would be),
  /// each slice to where its floats would begin.
  void send(const DeviceModel& model, std::uint64_t first, std::uint64_t last, const at::Tensor& out);
  /// Squared norm of the slices of `parameters` (the gradient on the host) that were sent as fp32; 0 unless active.
  [[nodiscard]] double squared_norm_of_fp32(std::span<const float> parameters) const;

 private:
  const GradientEncoding* encoding_ = nullptr;
  UnsentSlices unsent_;
};

}  // namespace motley::learn
