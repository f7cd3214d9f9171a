// Copies the values of each block to the device just before the block's forward pass needs them, on a lane of their own.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/step_io.h"
#include "learn/torch/device_codec.h"
#include "learn/torch/device_model.h"
#include "learn/torch/lanes.h"
#include "learn/torch/pinned.h"

namespace motley::learn {

/// Keeps a reference to the model. Call with the compute lane as the current one.
class ParameterUpload {
 public:
  explicit ParameterUpload(DeviceModel& model);
  /// Before the first upload() of a step.
  void begin();
  /// The parameters of `block`, or for block blocks() the statistics, are on the device before the compute lane's next operation.
  /// Waits for them with `io`, then takes what `io` has received or, if it has nothing of its own, reads `values` (the whole model).
  /// False: `io` gave up.
  bool upload(std::size_t block, std::span<const float> values, StepIo& io);
  /// After the last upload() of a step: tells `io` for how long in all the compute lane waited for values. Waits for the uploads.
  void report_stalls(StepIo& io);

 private:
  void take(const IncomingValues& incoming);
  void copy_pending();

  DeviceModel& model_;
  HostToDevice host_to_device_;
  DeviceCodec codec_;
  std::vector<TimedMark> wanted_, present_;  // by block, the statistics last: the compute lane came to the block; its values were there
  std::optional<std::uint64_t> last_taken_;  // in this step: index of the first value
  // Received fp32 values that are not copied yet; adjacent ones are copied together.
  std::uint64_t pending_first_ = 0;
  std::span<const float> pending_;
};

}  // namespace motley::learn
