// Copies the delta of a round of local steps, and the scalars that belong to it, from the device to the host.
#pragma once
#include <ATen/ATen.h>

#include <array>
#include <span>

#include "base/step_io.h"
#include "learn/torch/device_encoder.h"
#include "learn/torch/device_model.h"

namespace motley::learn {

/// Keeps a reference to the model. Call with the compute lane as the current one.
class DeltaDownload {
 public:
  explicit DeltaDownload(const DeviceModel& model);

  struct Scalars {
    std::array<double, 2> sums{};  // loss and hits
    double squared_norm = 0;       // of the delta, over the parameters
    double update_norm = 0;        // see ReceivedValues
    double residual = 0;           // see StepResult; 0 unless encoded
  };
  /// `out` receives `delta` (flat, on the device), encoded unless `encoding` is null. `sums` and `update_norm` are doubles on the device.
  /// Waits for all lanes.
  Scalars download(const at::Tensor& delta, const at::Tensor& sums, const at::Tensor& update_norm, const GradientEncoding* encoding,
                   std::span<float> out);

 private:
  const DeviceModel& model_;
  at::Tensor staging_, scalars_;  // pinned
  DeviceEncoder encoder_;
};

}  // namespace motley::learn
