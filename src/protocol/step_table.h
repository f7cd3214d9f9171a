// The table of ordered steps. A step is pending until its worker has sent Contributed and every server has sent Gathered; then it is
// complete, until the strategy applies or drops it. A complete step stays in the table when its worker leaves.
#pragma once
#include <boost/container/flat_set.hpp>
#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "base/ids.h"
#include "base/lease.h"
#include "base/time.h"
#include "policy/decisions.h"
#include "policy/spec.h"
#include "wire/message.h"

namespace motley::protocol {

struct PendingStep {
  Step step;
  Step parameters;  // the step with whose pull the parameters came
  Version version;  // of those parameters
  Lease lease;
  std::uint32_t local_steps{};
  policy::Bits bits;
  bool time_limited = false;  // it may compute fewer samples than its lease
  bool spare = false;         // its lease exceeds the worker's share of the batch
  Instant ordered_at{};
  std::optional<wire::Contributed> reported{};
  Instant reported_at{};
  Instant previous_reported_at{};                   // when the worker reported the step before
  boost::container::flat_set<ServerId> gathered{};  // servers that hold all their slices of it
  bool finite = true;                               // according to those servers

  [[nodiscard]] bool complete(std::uint32_t servers) const { return reported && gathered.size() >= servers; }
};

class StepTable {
 public:
  using PendingSteps = boost::container::small_vector<PendingStep, 1>;  // oldest first
  struct CompleteStep {
    Lease lease;
    Step parameters;
  };

  explicit StepTable(std::uint32_t servers) : servers_(servers) {}

  void add(WorkerId worker, PendingStep step) { workers_[worker].pending.push_back(std::move(step)); }
  /// The step, when this message completes it; valid until the table changes.
  [[nodiscard]] const PendingStep* on_contributed(Instant now, const wire::Contributed& reported);
  [[nodiscard]] const PendingStep* on_gathered(const wire::Gathered& reported);
  /// Removes a pending step that has ended at `now`.
  PendingStep remove(Instant now, WorkerId worker, Step step);
  /// Removes and returns all pending steps of this worker.
  [[nodiscard]] PendingSteps cancel(WorkerId worker) { return std::exchange(workers_[worker].pending, {}); }
  [[nodiscard]] PendingSteps leave(WorkerId worker);

  void add_complete(WorkerId worker, Step step, CompleteStep complete) { complete_.emplace(Key{worker, step}, std::move(complete)); }
  [[nodiscard]] CompleteStep take_complete(WorkerId worker, Step step);

  /// Null when this worker has no pending step.
  [[nodiscard]] const PendingStep* oldest(WorkerId worker) const;
  /// The first of this worker's steps before `next` that is not applied yet; `next` when there is none.
  [[nodiscard]] Step first_missing(WorkerId worker, Step next) const;
  /// The report to the strategy of a step that is complete at `now`.
  [[nodiscard]] policy::Contribution contribution(Instant now, WorkerId worker, const PendingStep& step) const;
  void driver_paused(Duration time);

 private:
  using Key = std::pair<WorkerId, Step>;
  struct Worker {
    Instant last_reported_at{};
    Instant last_completed_at{};
    PendingSteps pending;
  };
  [[nodiscard]] PendingStep* find(WorkerId worker, Step step);
  [[nodiscard]] Duration credible_compute(Instant now, WorkerId worker, const PendingStep& step) const;

  std::uint32_t servers_;
  std::map<WorkerId, Worker> workers_;
  std::map<Key, CompleteStep> complete_;
};

}  // namespace motley::protocol
