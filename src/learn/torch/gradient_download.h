// Copies the gradient of each block to the host as soon as its backward pass has computed it, while the device goes on with the block in
// front of it; and the scalars of the step.
#pragma once
#include <ATen/ATen.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/step_io.h"
#include "learn/torch/bf16_sender.h"
#include "learn/torch/device_encoder.h"
#include "learn/torch/device_model.h"
#include "learn/torch/lanes.h"

namespace motley::learn {

/// Keeps a reference to the model. Per step: begin(), send() of each block from the last to the first and of the statistics,
/// send_scalars(), deliver() in the order of send(), scalars().
class GradientDownload {
 public:
  explicit GradientDownload(DeviceModel& model);
  /// `out` and `encoding` (null: fp32) must stay valid until scalars() returns. A slice holds parameters or statistics, not both.
  void begin(std::span<float> out, const GradientEncoding* encoding);
  /// Asks the out lane for a copy of the gradient of `block`, or for block blocks() of the change of the statistics, and for its norm.
  void send(std::size_t block);
  void send_scalars();
  /// Waits until the gradient of `block` is in `out` and tells `io`.
  void deliver(std::size_t block, StepIo& io);

  struct Scalars {
    std::array<double, 2> sums{};  // loss and hits
    double squared_norm = 0;       // of the gradient, over the parameters
    double residual = 0;           // see StepResult
  };
  /// Waits for send_scalars(). After the last deliver().
  Scalars scalars();

 private:
  /// The gradient is to be encoded by encoder_.
  [[nodiscard]] bool encodes() const { return encoding_ != nullptr && !bf16_sender_.active(); }
  void copy_from_staging(std::uint64_t first, std::uint64_t last);

  DeviceModel& model_;
  std::vector<Mark> computed_, copied_;  // by block, the statistics last
  Mark scalars_copied_;
  at::Tensor staging_;  // pinned, flat
  at::Tensor norms_;    // of the gradient, by block
  at::Tensor scalars_;  // pinned
  DeviceEncoder encoder_;
  Bf16Sender bf16_sender_;
  // Of this step:
  std::span<float> out_;
  const GradientEncoding* encoding_ = nullptr;
  bool direct_ = false;  // `out` is pinned: the device writes into it
  at::Tensor host_;      // staging_ or `out`
};

}  // namespace motley::learn
