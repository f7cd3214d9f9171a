// Where a worker computes: a thread of its own that turns orders into contributions. The pump lays parameters on it slice by slice and
// takes gradients from it as they are made; the two never touch the same slice at the same time.
#pragma once
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/step_report.h"
#include "cluster/cost.h"
#include "cluster/device.h"
#include "cluster/known_batch_sizes.h"
#include "runtime/buffer.h"
#include "runtime/clock.h"
#include "runtime/incoming_parameters.h"
#include "runtime/next_step_io.h"
#include "runtime/task_thread.h"
#include "store/epochs.h"
#include "store/layer_timing.h"
#include "store/layout.h"
#include "store/replica.h"
#include "wire/message.h"

namespace motley::runtime {

/// One step on the desk.
struct Computation {
  wire::Order order;
  std::shared_ptr<IncomingParameters> values;
  SharedBuffer out;
  Instant began{};          // on the clock of training
  std::uint64_t samples{};  // that it will have; known when its first slice is produced
  std::atomic<bool> cancelled = false;
  /// `out` is, with so many bits: the bytes of each slice lie where its floats would begin; 0: it is not.
  std::atomic<std::uint8_t> coded = 0;

  /// Parameters of a later pull are coming in: local steps take them in as they are there.
  void comes(const std::shared_ptr<IncomingParameters>& newer);
  [[nodiscard]] std::shared_ptr<IncomingParameters> newer();

 private:
  std::mutex mutex_;
  std::shared_ptr<IncomingParameters> newer_;
};

struct StepExecutorSetup {
  std::unique_ptr<GradientSource> source;
  store::ReplicaOptions replica;
  store::Layout layout;
  std::uint64_t epoch_samples{};
  std::uint64_t seed{};
  std::optional<cluster::Device> emulated;  // takes as long as this says, whatever the mathematics took
  store::LayerTiming layer_timing{};  // of an emulated device; empty: it has read everything when it begins, and made nothing until it ends
  store::Shards shards{};             // of the samples, when they are not anybody's
  std::uint32_t batch_multiple =
      0;  // a device that is slow in small pieces: a step is done at once, of so many samples or a multiple; 0: it is not
  bool new_sizes_are_slow = false;  // the first batch of each size takes the device longer
  std::uint32_t usual = 0;          // samples of a step to begin with, for a device that is to warm up
  bool keeps_values = false;        // the device keeps what it was given: it takes changes as they come
  bool bf16_transfer = false;       // it computes with weights of 16 bits, and so are their gradients
};

/// Called on the pump thread; never for a computation that was cancelled.
class StepExecutorOwner {
 public:
  virtual ~StepExecutorOwner() = default;
  /// This slice of the contribution is final.
  virtual void produced(const std::shared_ptr<Computation>& computation, SliceId slice) = 0;
  virtual void computed(const std::shared_ptr<Computation>& computation, const StepReport& report) = 0;
  /// Torch gave up, for want of memory mostly.
  virtual void failed(const std::string& what) = 0;
};

class StepExecutor {
 public:
  StepExecutor(boost::asio::io_context& event_loop, StepExecutorSetup setup, StepExecutorOwner& owner);
  ~StepExecutor();
  StepExecutor(const StepExecutor&) = delete;
  StepExecutor& operator=(const StepExecutor&) = delete;

  [[nodiscard]] const store::Layout& layout() const { return setup_.layout; }
  [[nodiscard]] std::uint32_t batch_multiple() const { return setup_.batch_multiple; }
  /// Parameters come in and gradients leave block by block; not on an emulated device without a cadence.
  [[nodiscard]] bool streams() const { return !setup_.emulated || !setup_.layer_timing.empty(); }
  /// Parameters may lie in an arrival as they came, coded.
  [[nodiscard]] bool keeps_values() const { return setup_.keeps_values && !setup_.replica.local_steps; }
  /// Weights need no more than 16 bits on their way here, and their gradients from here.
  [[nodiscard]] bool bf16_transfer() const { return setup_.bf16_transfer && keeps_values(); }
  /// Contributions are changes of the model, not gradients.
  [[nodiscard]] bool local_steps() const { return setup_.replica.local_steps; }

  /// It can begin a step before the last one has ended.
  [[nodiscard]] bool begins_next_step_early() const {
    return setup_.keeps_values && setup_.batch_multiple > 0 && !setup_.emulated && !local_steps();
  }

  /// Calls `then` on the pump when the device has warmed up, with how long a step takes it; nothing: it did not need to.
  void warm_up(std::function<void(std::optional<cluster::Affine>)> then);

  /// Instead of what is on it now. `clock` is that of training, for emulated devices.
  void compute(const std::shared_ptr<Computation>& computation, const Clock& clock);
  /// What is computed now is followed by this, unless something happens; its parameters have begun to come.
  void prefetch(const wire::Order& order, const std::shared_ptr<IncomingParameters>& values);
  void abandon();
  /// Calls `then` on the pump when everything that was abandoned has let go of the device.
  void when_free(std::function<void()> then);
  /// It works for somebody new from now on: what local steps have led to counts for nothing.
  void start_over();

 private:
  class Stream;
  class TimedMicroBatcher;
  class TimedSingleBatch;
  class Newer;
  StepReport contribute(Computation& computation, const Lease& lease, Stream& stream,
                        const std::optional<cluster::Device::StepOutcome>& outcome, const Clock& clock);
  void work(const std::shared_ptr<Computation>& computation, const Clock& clock);
  cluster::Affine measured();
  Duration try_out(std::uint64_t size);
  void note_batch_size(std::uint64_t size);
  std::optional<NextStep> next_step();
  void stop(const Clock& clock);

  boost::asio::io_context& event_loop_;
  std::unique_ptr<NextStepIo>
      next_step_io_;  // the desk's: what may have been begun, in this step or the last; outlives the device that reads it
  const NextStepIo* last_next_step_io_ = nullptr;  // in the last; null: nothing
  StepExecutorSetup setup_;
  StepExecutorOwner& owner_;
  store::Replica replica_;
  store::Epochs epochs_;
  Lease before_;                                    // of the last step
  std::vector<std::uint32_t> likely_next_samples_;  // samples of the next, perhaps
  std::optional<WorkerId> computed_for_;            // who we were at the last step
  cluster::KnownBatchSizes sizes_;                  // for devices with a grain
  bool new_batch_size_ = false;                     // this step is the first of its size
  bool codes_ = false;                              // the device has coded something, and may have kept some of it back
  double unit_ = 0;                                 // samples * rate of the contribution that was coded last; 0: none
  struct Prefetched {
    wire::Order order;
    std::shared_ptr<IncomingParameters> values;
  };
  std::optional<Prefetched> prefetched_;  // by the pump, until the desk's thread takes it; guarded by mutex_
  std::shared_ptr<Computation> current_;  // the pump's view
  bool closing_ = false;                  // guarded by mutex_
  std::mutex mutex_;
  std::condition_variable cancelled_;
  std::shared_ptr<bool> alive_;
  TaskThread thread_;  // last: ends first
};

}  // namespace motley::runtime
