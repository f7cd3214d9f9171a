// The forward pass of a training step on a device. The first blocks of the next step can be asked for before this one has ended, so that
// the device does not wait while the host turns to the next step.
#pragma once
#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <span>

#include "base/step_io.h"
#include "learn/torch/device_model.h"
#include "learn/torch/device_samples.h"
#include "learn/torch/lanes.h"
#include "learn/torch/parameter_upload.h"

namespace motley::learn {

/// Keeps references to all three. Call run(), upload_statistics() and drop() with the compute lane as the current one.
class ForwardPass {
 public:
  ForwardPass(DeviceModel& model, DeviceSamples& samples, ParameterUpload& upload);

  struct Output {
    at::Tensor logits;              // detached
    DeviceSamples::Gathered batch;  // keep it until the step ends: the device reads it, and torch may reuse its memory once it is freed
  };
  /// Up to the logits, from where begin_next() stopped if that was this step. None: `io` gave up.
  std::optional<Output> run(std::span<const float> values, std::span<const std::uint32_t> samples, StepIo& io);

  /// After the backward pass: the statistics become what they were before the step, since values stay on the device between steps.
  void restore_statistics();
  /// While the device computes: gathers the samples that `io` expects next.
  void gather_next(StepIo& io);
  /// While the device computes the last blocks of backward: begins the step that `io` says is next, as far as its values have arrived.
  void begin_next(StepIo& io);

  /// Copies the statistics to the device. False: `io` gave up.
  bool upload_statistics(std::span<const float> values, StepIo& io);
  /// Discards the step that begin_next() began, if there is one.
  void drop();
  /// Discards whatever has begun, and waits for the device: no graph is left, and no copy reads memory of the caller.
  void abandon();

 private:
  struct Begun {
    std::uint64_t id = 0;           // StepIo::id()
    std::span<const float> values;  // of the host
    DeviceSamples::Gathered batch;
    DeviceModel::Passing passing;
  };
  bool begin(std::uint64_t id, std::span<const float> values, std::span<const std::uint32_t> samples, StepIo& io);
  bool advance(std::size_t until, StepIo& io);

  DeviceModel& model_;
  DeviceSamples& samples_;
  ParameterUpload& upload_;
  std::optional<Begun> begun_;
  std::uint64_t failed_id_ = 0;  // of the step that begin_next() could not begin
  bool restored_ = true;         // the statistics, since the last begin()
  Mark statistics_restored_, samples_gathered_;
};

}  // namespace motley::learn
