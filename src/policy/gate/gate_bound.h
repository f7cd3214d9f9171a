// Gate `bound`: stale synchronous parallel (Ho et al. 2013), and with a moving bound DSSP (Zhao et al. 2019).
//
// Rule: contributions are applied on arrival. A worker's clock counts its contributions; the worker continues while its clock is at most
//   `lower` ahead of that of the slowest busy or waiting worker, else it waits for the slowest one. With `upper` > `lower` a worker that
//   would have to wait may be granted up to upper-lower further steps: the number that makes its predicted wait for the slowest worker's
//   next arrival shortest, by the last interval of both.
// Guarantee: no worker begins a step while more than `upper` steps ahead of the slowest; with N workers and constant membership no
//   contribution misses more than (N-1)*(2*upper+2) versions.
// Cost: in the long run fast workers are as slow as the slowest one. O(log P + upper-lower) per contribution.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "policy/gate/gate.h"

namespace motley::policy {

class GateBound : public Gate {
 public:
  /// lower <= upper. Equal: plain SSP.
  GateBound(std::uint32_t lower, std::uint32_t upper);
  void joined(Instant now, std::span<const WorkerId> workers, Decisions& out) override;
  void left(Instant now, WorkerId worker, Decisions& out) override;
  void ordered(Instant now, WorkerId worker, Duration expected) override;
  void idled(Instant now, WorkerId worker, Decisions& out) override;
  void contributed(Instant now, const Contribution& contribution, Decisions& out) override;
  void refused(Instant now, WorkerId worker, Decisions& out) override;

 private:
  struct WorkerClock {
    std::uint64_t clock = 0;
    std::uint32_t extra = 0;  // steps granted beyond the lower bound
    Instant last{};           // its last arrival
    Duration interval{};      // between its last two; 0: not known yet
    bool waiting = false;
    bool idle = false;  // has no work, so no other worker waits for it
  };
  [[nodiscard]] std::uint64_t slowest_clock() const;
  [[nodiscard]] std::uint32_t extra_steps(const WorkerClock& fast) const;
  void tick(WorkerId worker, WorkerClock& worker_clock, Instant now);
  void go_or_wait(WorkerId worker, WorkerClock& worker_clock, Decisions& out);
  void wake(Decisions& out);
  void enlist(WorkerId worker, std::uint64_t clock);
  void delist(WorkerId worker, std::uint64_t clock);

  std::uint32_t lower_;
  std::uint32_t upper_;
  std::map<WorkerId, WorkerClock> worker_clocks_;
  std::map<std::uint64_t, std::set<WorkerId>> at_clock_;  // workers that others may wait for: all but the idle ones
  std::set<std::pair<std::uint64_t, WorkerId>> waiting_;
};

}  // namespace motley::policy
