// Tells a device, while it computes a step, what comes next: the next step, if its order is here, or the samples that it will probably
// have.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/lease.h"
#include "runtime/next_step_io.h"
#include "store/epochs.h"

namespace motley::runtime {

/// prefetch() and cancel() from any thread, the others on the computing thread.
class StepPrefetcher {
 public:
  /// Whether a step of this order may begin early.
  using MayBegin = std::function<bool(const wire::Order&)>;
  StepPrefetcher(store::Epochs& epochs, MayBegin may_begin) : epochs_(epochs), may_begin_(std::move(may_begin)) {}

  /// The step after the current one is probably this; its parameters are being received.
  void prefetch(const wire::Order& order, std::shared_ptr<IncomingParameters> values);
  void cancel();

  void begin_step() { begun_before_ = next_.get(); }
  /// The current step was computed. The parameters of a step that was begun early are released once that step was computed.
  void end_step(const Lease& lease);
  /// The next step, for the device to begin; none: not known yet. Valid until that step, or another in its place, was computed.
  [[nodiscard]] std::optional<NextStep> next_step();
  /// Samples of the step after one with this lease, predicted from the last two leases; empty: no prediction. Valid until the next call.
  [[nodiscard]] std::span<const std::uint32_t> likely_next_samples(const Lease& lease);

 private:
  struct Prefetched {
    wire::Order order;
    std::shared_ptr<IncomingParameters> values;
  };
  store::Epochs& epochs_;
  MayBegin may_begin_;
  std::mutex mutex_;
  std::optional<Prefetched> prefetched_;      // until the computing thread takes it; guarded by mutex_
  std::unique_ptr<NextStepIo> next_;          // the device may have begun it, in this step or the last one
  const NextStepIo* begun_before_ = nullptr;  // of next_: in the last one
  Lease last_lease_;
  std::vector<std::uint32_t> likely_samples_;
};

}  // namespace motley::runtime
