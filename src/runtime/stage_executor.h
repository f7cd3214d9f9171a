// Where a stage of a pipeline computes: one thread of its own, one part after another. An emulated device takes as long as it says.
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

/// One part of one micro-batch, on its way to the thread and back.
struct StageWork {
  protocol::RunPart part;
  Activation in;   // what came from a neighbour
  Activation out;  // what goes to one
  double rate = 0;
  Instant began{};
  Instant ended{};
  bool finite = true;
  std::uint64_t stash_bytes = 0;  // once a forward has begun
};

/// Called on the pump thread; never for a setting that is over.
class StageExecutorOwner {
 public:
  virtual ~StageExecutorOwner() = default;
  virtual void done(StageWork& work) = 0;
  virtual void state_submitted(std::uint64_t mini_batches, std::shared_ptr<const store::StagePart> part) = 0;
  virtual void failed(const std::string& what) = 0;
};

/// What a stage of one generation is.
struct StageConfig {
  std::function<std::unique_ptr<store::StageReplica>()> make;  // called on the desk's thread
  std::vector<double> parts_s;                                 // of an emulated device; empty: it takes what it takes
  double kept_bytes = 0;                                       // by a micro-batch
  Clock clock;                                                 // of training
};

/// Pump thread only.
class StageExecutor {
 public:
  StageExecutor(boost::asio::io_context& event_loop, std::optional<cluster::Device> emulated, StageExecutorOwner& owner);
  ~StageExecutor();
  StageExecutor(const StageExecutor&) = delete;
  StageExecutor& operator=(const StageExecutor&) = delete;

  /// Whatever is under way of the setting before counts for nothing.
  void configure(StageConfig config);
  /// In order, as they are said.
  void run(StageWork work);
  void commit(std::uint64_t mini, double rate);
  void submit_state(std::uint64_t mini_batches);
  void stop();
  /// Calls `then` when whatever was under way has let go of the device.
  void when_free(std::function<void()> then);
  /// Pieces of work that are done, of this setting or others, and whether there is another one.
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
  std::uint64_t incarnation_ = 0;  // with mutex_: that counts now; each configure() and stop() begins another
  bool closing_ = false;           // with mutex_
  std::uint64_t given_ = 0;        // pieces of work
  std::atomic<std::uint64_t> done_ = 0;
  // The thread's own:
  std::optional<cluster::Device> as_described_;
  std::optional<cluster::Device> emulated_;
  Instant device_free_{};
  std::optional<StageConfig> config_;
  bool broken_ = false;  // something of this setting has failed: the rest of it cannot be done
  std::unique_ptr<store::StageReplica> replica_;
  std::shared_ptr<bool> alive_;
  TaskThread thread_;  // last: ends first
};

}  // namespace motley::runtime
