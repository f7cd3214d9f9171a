// The StepIo of one step of a worker: parameters that are still being received, gradients that are sent as they become ready. On an
// emulated device with layer timing the step stalls as such a device would, and slices are ready at the times of its description.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/bits.h"
#include "base/step_io.h"
#include "runtime/clock.h"
#include "runtime/computation.h"
#include "runtime/gradient_encodings.h"
#include "runtime/interruptible_wait.h"
#include "runtime/step_prefetcher.h"
#include "store/layer_timing.h"
#include "store/layout.h"

namespace motley::runtime {

/// Computing thread only.
class StepStream final : public StepIo {
 public:
  /// Objects that outlive the step.
  struct Environment {
    const store::Layout& layout;
    const store::LayerTiming& layer_timing;
    GradientEncodings& encodings;
    StepPrefetcher& prefetcher;
    InterruptibleWait& wait;             // ends when the computation is cancelled
    bool streams = true;                 // slices are reported when they are ready
    bool keeps_values = false;           // the device takes encoded parameters itself
    std::function<void(SliceId)> ready;  // called for each slice of the contribution that is final
  };
  /// `emulated`: how long the step takes an emulated device with layer timing.
  StepStream(Environment environment, std::shared_ptr<Computation> computation, std::optional<Duration> emulated, const Clock& clock);

  /// How long the step stalled for parameters, on the real or the emulated device.
  [[nodiscard]] Duration stalled_time() const { return emulated_ ? emulated_stalled_ : idle(); }
  /// How long wait_for() has blocked.
  [[nodiscard]] Duration waited() const { return waited_; }
  /// For how much of the time the real device did not compute.
  [[nodiscard]] Duration idle() const { return reported_stall_.value_or(waited_); }

  [[nodiscard]] std::uint64_t id() const override { return computation_id(computation_->order); }
  bool wait_for(std::uint64_t first, std::uint64_t last) override;
  bool take(std::uint64_t first, std::uint64_t last, const std::function<void(const IncomingValues&)>& each) override;
  void stalled(Duration time) override { reported_stall_ = reported_stall_.value_or(Duration{0}) + time; }
  void gradient_ready(std::uint64_t first, std::uint64_t last) override;
  [[nodiscard]] std::optional<NextStep> next_step() override { return environment_.prefetcher.next_step(); }
  [[nodiscard]] std::span<const std::uint32_t> likely_next_samples() override;
  [[nodiscard]] const GradientEncoding* gradient_encoding() override;
  void encoded_gradient_ready(std::uint64_t first, std::uint64_t last) override;

 private:
  [[nodiscard]] std::chrono::steady_clock::time_point emulated_time(double fraction) const;
  void stall_for(std::uint64_t first, std::uint64_t last);

  Environment environment_;
  std::shared_ptr<Computation> computation_;
  Clock clock_;
  std::vector<std::uint64_t> missing_;  // by slice: values whose gradients are not ready
  std::optional<GradientEncodings::Request> encoding_;
  std::optional<Duration> emulated_;  // length of the step without stalls
  Duration emulated_stalled_{};
  std::chrono::steady_clock::duration waited_{};
  std::optional<Duration> reported_stall_;  // by the device
};

}  // namespace motley::runtime
