// Interface of batching policies: how many samples each worker computes per step, so that all workers together make the global batch. No
// worker gets more than its memory holds; if all are full, the batch is smaller than the global one, and each contribution counts b_i/B.
#pragma once
#include <cstdint>
#include <functional>
#include <span>

#include "base/ids.h"
#include "base/time.h"
#include "policy/batching/batch_allocator.h"
#include "policy/monitor.h"

namespace motley::policy {

/// A step that ends at a time limit, done or not: the rest of its lease returns to the pool.
struct TimeLimit {
  std::uint32_t spare = 0;  // samples beyond the batch, to be done if time allows
  Duration limit{};         // of compute time; 0: none
  std::uint32_t micro = 1;  // samples between two looks at the clock
};

/// Seconds per step of a worker's transfers that are not hidden under computation.
using Exposed = std::function<double(WorkerId)>;

class BatchingPolicy {
 public:
  virtual ~BatchingPolicy() = default;
  virtual void joined(std::span<const WorkerProfile> profiles) = 0;
  virtual void left(WorkerId worker) = 0;
  /// An out-of-memory error has shown that one step of this worker cannot have more samples than this.
  virtual void restricted(WorkerId worker, std::uint32_t max_batch) = 0;
  /// The members of the next update, in the order in which they are summed.
  virtual void applied(std::span<const Contribution> /*members*/) {}
  /// A global update was made: the policy may plan anew.
  virtual void updated(const Monitor& monitor, const Exposed& exposed) = 0;
  /// Samples of this worker's next step: at least 1, at most its memory's limit. O(log P).
  [[nodiscard]] virtual std::uint32_t batch(WorkerId worker) const = 0;
  /// Local steps of this worker's next round, each of batch() samples; by default as many as the interval.
  [[nodiscard]] virtual std::uint32_t steps(WorkerId) const { return interval_; }
  /// Sets the interval: steps per round, each of a global batch over all workers.
  virtual void interval(std::uint32_t steps) { interval_ = steps; }
  /// Mean over the workers.
  [[nodiscard]] virtual double mean_steps() const { return interval_; }
  /// Factor of the learning rate of local steps.
  [[nodiscard]] virtual double rate_scale() const { return 1; }
  [[nodiscard]] virtual TimeLimit time_limit(WorkerId) const { return {}; }
  /// Compute time of a step of the plan; 0: there is no plan by time.
  [[nodiscard]] virtual double step_s() const { return 0; }

 private:
  std::uint32_t interval_ = 1;
};

}  // namespace motley::policy
