// Computes the passes of a pipeline stage in order on one thread. An emulated device takes as long as its description says.
#pragma once
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/activation.h"
#include "cluster/device.h"
#include "protocol/stage.h"
#include "runtime/clock.h"
#include "runtime/task_thread.h"
#include "store/stage_replica.h"

namespace motley::runtime {

/// One pass of one micro-batch: given to the thread, and returned when done.
struct StageWork {
  protocol::RunPart part;
  Activation in;   // from a neighbour
  Activation out;  // to a neighbour
  double rate = 0;
  Instant began{};
  Instant ended{};
  bool finite = true;
  std::uint64_t stash_bytes = 0;  // set by a forward pass
};

/// Called on the event-loop thread; never for a configuration that was replaced.
class StageExecutorOwner {
 public:
  virtual ~StageExecutorOwner() = default;
  virtual void done(StageWork& work) = 0;
  virtual void state_submitted(std::uint64_t mini_batches, std::shared_ptr<const store::StagePart> part) = 0;
  virtual void failed(const std::string& what) = 0;
};

/// The configuration of a stage in one generation.
struct StageConfig {
  std::function<std::unique_ptr<store::StageReplica>()> make;  // called on the executor's thread
  std::vector<double> parts_s;  // seconds per pass of an emulated device, by pipeline::Part; empty: not emulated
  double kept_bytes = 0;        // per micro-batch
  Clock clock;                  // of training
};

/// Event-loop thread only.
class StageExecutor {
 public:
  StageExecutor(boost::asio::io_context& event_loop, std::optional<cluster::Device> emulated, StageExecutorOwner& owner);
  ~StageExecutor();
  StageExecutor(const StageExecutor&) = delete;
  StageExecutor& operator=(const StageExecutor&) = delete;

  /// Work in progress of the earlier configuration is dropped.
  void configure(StageConfig config);
  /// Calls run in order.
  void run(StageWork work);
  void commit(std::uint64_t mini, double rate);
  void submit_state(std::uint64_t mini_batches);
  void stop();
  /// Calls `then` when all work in progress has released the device.
  void when_free(std::function<void()> then);
  /// Units of work that are done, over all configurations, and whether another is in progress.
  struct Status {
    std::uint64_t done = 0;
    bool busy = false;
  };
  [[nodiscard]] Status status() const { return {done_, done_ < given_}; }

 private:
  void compute(std::uint64_t incarnation, const std::shared_ptr<StageWork>& work);
  void post(std::uint64_t incarnation, std::function<void()> what);
  void report(std::uint64_t incarnation, std::function<void()> what);
  [[nodiscard]] std::uint64_t current();
  [[nodiscard]] bool over(std::uint64_t incarnation);

  boost::asio::io_context& event_loop_;
  StageExecutorOwner& owner_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t incarnation_ = 0;  // current configuration, guarded by mutex_; configure() and stop() increment it
  bool closing_ = false;           // guarded by mutex_
  std::uint64_t given_ = 0;        // units of work
  std::atomic<std::uint64_t> done_ = 0;
  // Used by the thread only:
  std::optional<cluster::Device> as_described_;
  std::optional<cluster::Device> emulated_;
  Instant device_free_{};
  std::optional<StageConfig> config_;
  bool broken_ = false;  // work of this configuration has failed: the rest is skipped
  std::unique_ptr<store::StageReplica> replica_;
  std::shared_ptr<bool> alive_;
  TaskThread thread_;  // last: joined first
};

}  // namespace motley::runtime
