// Gate `all`: a barrier over all workers of a round.
//
// Rule: all workers that are present when a round begins take part in it. When the last of them has contributed (or left), their
//   contributions form one update, in order of worker id, and the next round begins. A worker that joins during a round waits for the next.
//   With an overlap of d, rounds t to t+d are in progress at once: a worker that has finished round t goes on to t+1 while the other
//   workers finish and while contributions and parameters are in flight.
// Guarantee: staleness at most d; with d = 0 and fixed membership the result does not depend on timing.
// Cost: all workers wait for the slowest, d rounds later. O(P) per round, O(1) per contribution.
#pragma once
#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <deque>
#include <vector>

#include "policy/gate/gate.h"
#include "policy/worker_set.h"

namespace motley::policy {

class GateAll : public Gate {
 public:
  void joined(Instant now, std::span<const WorkerId> workers, Decisions& out) override;
  void left(Instant now, WorkerId worker, Decisions& out) override;
  void ordered(Instant now, WorkerId worker, Duration expected) override;
  void idled(Instant now, WorkerId worker, Decisions& out) override;
  void contributed(Instant now, const Contribution& contribution, Decisions& out) override;
  void refused(Instant now, WorkerId worker, Decisions& out) override;
  void overlap(std::uint32_t steps) override { overlap_ = steps; }
  /// Samples of another gate's worker are back in the pool: idle workers are released.
  void work_returned(Decisions& out) { go_on(Why::work_returned, out); }
  [[nodiscard]] bool in_step() const override { return true; }
  [[nodiscard]] std::optional<std::uint32_t> cohort(WorkerId) const override { return 0; }

 private:
  using RoundNumber = std::uint64_t;
  struct Round {
    std::size_t missing = 0;  // contributions, including those of workers that were just released
    std::vector<Contribution> arrived;
  };
  struct PendingRounds {
    boost::container::small_vector<RoundNumber, 2> ordered;   // oldest first: a worker contributes in order
    boost::container::small_vector<RoundNumber, 2> released;  // ordered() or idled() follows
  };
  [[nodiscard]] Round& round(RoundNumber number) { return rounds_[number - oldest_]; }
  void settle(RoundNumber number) { --round(number).missing; }
  void go_on(Why why, Decisions& out);
  [[nodiscard]] bool idle(WorkerId worker) const;
  void hold_if_idle(WorkerId worker, Decisions& out) const;

  WorkerSet worker_set_;
  std::uint32_t overlap_ = 0;
  std::deque<Round> rounds_;  // in progress
  RoundNumber oldest_ = 0;
  std::vector<PendingRounds> pending_;  // by WorkerId
};

}  // namespace motley::policy
