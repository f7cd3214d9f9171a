// Loads: how many samples each worker gets for one step, so that all of them together make the global batch. Nobody gets more than its
// memory holds; when everyone is full, the batch is smaller than the global one, and each contribution still counts b_i/B.
#pragma once
#include <cstdint>
#include <functional>
#include <span>

#include "base/ids.h"
#include "base/time.h"
#include "policy/batching/batch_allocator.h"
#include "policy/monitor.h"

namespace motley::policy {

/// A step that ends when its time is up, done or not: what is left of its lease goes back to the pool.
struct TimeLimit {
  std::uint32_t spare = 0;  // samples beyond the batch, should there be time for them
  Duration limit{};         // of computing; 0: there is none
  std::uint32_t micro = 1;  // samples between two looks at the clock
};

/// Seconds of a worker's step that it neither computes nor hides under computing.
using Exposed = std::function<double(WorkerId)>;

class BatchingPolicy {
 public:
  virtual ~BatchingPolicy() = default;
  virtual void joined(std::span<const WorkerProfile> profiles) = 0;
  virtual void left(WorkerId worker) = 0;
  /// This worker has found that one step cannot have more samples than this.
  virtual void restricted(WorkerId worker, std::uint32_t max_batch) = 0;
  /// These make the next update, in the order in which they are summed.
  virtual void applied(std::span<const Contribution> /*members*/) {}
  /// A global update was made: time to think again, for loads that do.
  virtual void updated(const Monitor& monitor, const Exposed& exposed) = 0;
  /// Samples for this worker's next step: at least 1, at most what it said that it can hold. O(log P).
  [[nodiscard]] virtual std::uint32_t batch(WorkerId worker) const = 0;
  /// Local steps of this worker's next round, each of batch() samples: everyone takes as many as the interval says, for loads that know no
  /// better.
  [[nodiscard]] virtual std::uint32_t steps(WorkerId) const { return interval_; }
  /// The interval is so many steps from now on, each of a global batch in all.
  virtual void interval(std::uint32_t steps) { interval_ = steps; }
  /// Mean over the workers.
  [[nodiscard]] virtual double mean_steps() const { return interval_; }
  /// What the learning rate of local steps is to be multiplied by.
  [[nodiscard]] virtual double rate_scale() const { return 1; }
  [[nodiscard]] virtual TimeLimit time_limit(WorkerId) const { return {}; }
  /// How long a step of the plan computes; 0: there is no such plan.
  [[nodiscard]] virtual double step_s() const { return 0; }

 private:
  std::uint32_t interval_ = 1;
};

}  // namespace motley::policy
