// Groups of workers of similar measured speed.
//
// All workers are one group until each has been measured 10 times. Then x_i = log speed is clustered exactly for K = 1..4. If some K keep
//   every group within a spread of 2.1 (fastest over slowest), only those are considered (else the K with the least spread); of these the
//   one with the highest throughput(K)/(1 + .1*(K-1)), throughput = sum of S_k/(1 + j_k*sqrt(2 ln n_k)): with jitter j_k, a group of n_k
//   workers waits that much longer for its last one. S_k: sum of the members' speeds.
// All workers are grouped again when the speed of one, relative to its group's, has changed by less than .7 or more than 1.4 times for 20
//   of its steps, at least 100 steps after the last grouping. A new worker joins the slowest group until it is measured, then the nearest.
// Cost: O(1) per contribution, O(K P log P) per grouping.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "policy/monitor.h"
#include "policy/worker_set.h"

namespace motley::policy {

using Group = std::uint32_t;  // the slowest first

class Groups {
 public:
  explicit Groups(bool regroup = true) : regroup_(regroup) {}
  void joined(WorkerId worker);
  void left(WorkerId worker);
  /// After a contribution of this worker.
  void measured(WorkerId worker, const Monitor& monitor);

  [[nodiscard]] Group of(WorkerId worker) const { return members_[worker.value].group; }
  [[nodiscard]] Group count() const { return count_; }
  /// How often the workers were grouped.
  [[nodiscard]] std::uint64_t groupings() const { return groupings_; }

 private:
  struct Member {
    Group group = 0;
    bool placed = false;         // its group follows from its speed
    double log_speed = 0;        // now
    double log_then = 0;         // at the last grouping
    std::uint32_t strayed = 0;   // steps in a row beyond the limits of drift
    std::uint64_t measured = 0;  // steps
  };
  struct Sums {
    double drift = 0;  // of log speeds since the grouping
    double log_speed = 0;
    std::uint32_t members = 0;  // placed ones
  };
  [[nodiscard]] bool everyone_measured() const;
  [[nodiscard]] double drift(const Member& member) const;
  void group_everyone(const Monitor& monitor);
  void place(Member& member);
  [[nodiscard]] double score(std::span<const Group> groups, Group count, const Monitor& monitor) const;
  [[nodiscard]] double widest_spread(std::span<const Group> groups, Group count) const;

  bool regroup_;
  WorkerSet worker_set_;
  std::vector<Member> members_;  // by id
  std::vector<Sums> sums_;       // by group
  Group count_ = 1;
  std::uint64_t groupings_ = 0;
  std::uint64_t contributions_ = 0;  // since the last grouping
};

}  // namespace motley::policy
