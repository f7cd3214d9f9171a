// Computes a worker's steps on a thread of its own: turns orders into contributions. The event loop fills in parameters slice by slice and
// takes gradients as they become ready; the two threads never touch the same slice at the same time.
#pragma once
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/step_report.h"
#include "cluster/cost.h"
#include "cluster/device.h"
#include "cluster/known_batch_sizes.h"
#include "runtime/clock.h"
#include "runtime/computation.h"
#include "runtime/gradient_encodings.h"
#include "runtime/interruptible_wait.h"
#include "runtime/step_prefetcher.h"
#include "runtime/step_stream.h"
#include "runtime/task_thread.h"
#include "store/epochs.h"
#include "store/layer_timing.h"
#include "store/layout.h"
#include "store/replica.h"
#include "transport/anchor.h"
#include "wire/message.h"

namespace motley::runtime {

struct StepExecutorSetup {
  std::unique_ptr<GradientSource> source;
  store::ReplicaOptions replica;
  store::Layout layout;
  std::uint64_t epoch_samples{};
  std::uint64_t seed{};
  std::optional<cluster::Device> emulated;  // steps take at least as long as this device takes
  store::LayerTiming layer_timing{};        // of the emulated device; empty: it reads everything first and is ready at the end
  store::Shards shards{};                   // of the samples, if workers train on shards
  std::uint32_t batch_multiple = 0;         // a device that computes a step in one batch, of a multiple of this; 0: in micro-batches
  bool new_sizes_are_slow = false;          // the first batch of each size takes the device longer
  std::uint32_t usual = 0;                  // samples of the first steps, for a device that warms up; 0: it does not
  bool keeps_values = false;                // the device keeps parameters and takes encoded changes to them
  bool bf16_transfer = false;               // it computes in bf16, and so are its gradients
};

/// Called on the event-loop thread; never for a cancelled computation.
class StepExecutorOwner {
 public:
  virtual ~StepExecutorOwner() = default;
  /// This slice of the contribution is final.
  virtual void produced(const std::shared_ptr<Computation>& computation, SliceId slice) = 0;
  virtual void computed(const std::shared_ptr<Computation>& computation, const StepReport& report) = 0;
  /// Torch gave up, for want of memory mostly.
  virtual void failed(const std::string& what) = 0;
};

/// Event-loop thread only.
class StepExecutor {
 public:
  StepExecutor(boost::asio::io_context& event_loop, StepExecutorSetup setup, StepExecutorOwner& owner);
  ~StepExecutor();
  StepExecutor(const StepExecutor&) = delete;
  StepExecutor& operator=(const StepExecutor&) = delete;

  [[nodiscard]] const store::Layout& layout() const { return setup_.layout; }
  [[nodiscard]] std::uint32_t batch_multiple() const { return setup_.batch_multiple; }
  /// Parameters are received and gradients sent block by block; not on an emulated device without layer timing.
  [[nodiscard]] bool streams() const { return !setup_.emulated || !setup_.layer_timing.empty(); }
  /// Parameters may stay encoded in IncomingParameters.
  [[nodiscard]] bool keeps_values() const { return setup_.keeps_values && !setup_.replica.local_steps; }
  /// Parameters and gradients need no more than bf16.
  [[nodiscard]] bool bf16_transfer() const { return setup_.bf16_transfer && keeps_values(); }
  /// Contributions are model deltas, not gradients.
  [[nodiscard]] bool local_steps() const { return setup_.replica.local_steps; }
  /// It can begin a step before the last one has ended.
  [[nodiscard]] bool begins_next_step_early() const {
    return setup_.keeps_values && setup_.batch_multiple > 0 && !setup_.emulated && !local_steps();
  }

  /// Calls `then` on the event loop once the device has warmed up, with its cost per step and sample; none: it does not warm up.
  void warm_up(std::function<void(std::optional<cluster::Affine>)> then);

  /// Abandons the current computation and begins this one. `clock` is that of training, for emulated devices.
  void compute(const std::shared_ptr<Computation>& computation, const Clock& clock);
  /// The current computation is probably followed by this one, whose parameters are being received.
  void prefetch(const wire::Order& order, const std::shared_ptr<IncomingParameters>& values) { prefetcher_.prefetch(order, values); }
  void abandon();
  /// Calls `then` on the event loop once everything that was abandoned has released the device.
  void when_free(std::function<void()> then);
  /// Serves a new member from now on: abandons the computation and forgets the local model and residuals.
  void start_over();

 private:
  using EmulatedOutcome = std::optional<cluster::Device::StepOutcome>;  // none: a real device
  StepReport contribute(Computation& computation, const Lease& lease, StepStream& stream, const EmulatedOutcome& outcome,
                        const Clock& clock);
  void work(const std::shared_ptr<Computation>& computation, const Clock& clock);
  [[nodiscard]] StepStream stream_of(const std::shared_ptr<Computation>& computation, const EmulatedOutcome& outcome, const Clock& clock);
  void note_batch_size(std::uint64_t size);
  [[nodiscard]] bool may_begin_early(const wire::Order& order) const;
  void end_cancelled(const Clock& clock);
  /// Runs `handler` on the event loop unless this is gone by then. From any thread.
  void deliver(std::function<void()> handler);

  boost::asio::io_context& event_loop_;
  StepPrefetcher prefetcher_;  // outlives the source in setup_, whose device may read from it
  StepExecutorSetup setup_;
  StepExecutorOwner& owner_;
  std::shared_ptr<Computation> current_;  // the event loop's
  InterruptibleWait wait_;
  bool closing_ = false;  // guarded by wait_
  // Of the computing thread:
  store::Replica replica_;
  store::Epochs epochs_;
  std::optional<WorkerId> computed_for_;  // the member that this worker was in the last local round
  cluster::KnownBatchSizes sizes_;
  bool new_batch_size_ = false;  // the current step is the first with its batch size
  GradientEncodings encodings_;
  transport::Anchor<StepExecutor> anchor_{*this};
  TaskThread thread_;  // last: joined first
};

}  // namespace motley::runtime
