// Finds stragglers by how long each worker's step takes and how old its base version is.
//
// dhat = max(expected time of a worker's step, time since the step began);  m = lower median of the expected times
// A worker straggles when  dhat > 1.3 m and it has fallen behind (another worker has contributed more often, or there is a newer version),
//                     or   dhat > 5.2 m,
//                     or   its base version is older than the threshold allows.
// It straggles no more after 3 contributions in a row that each took less than 1.3 m.
// The threshold of the gap moves between 2 and 8 towards the number of median steps that the slowest step in progress takes (after DSSP):
// a gap that follows from a worker's speed alone is no reason to act.
// Cost: O(1) per contribution, O(P) per look at all workers; looks are at least an eighth of the workers' contributions, or 0.1 m, apart.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "policy/constants.h"
#include "policy/decisions.h"

namespace motley::policy {

class Stragglers {
 public:
  void joined(WorkerId worker);
  void left(WorkerId worker);
  /// The worker computes on the newest version from now on.
  void began(Instant now, WorkerId worker, Version newest, Duration expected);
  /// The worker's step has ended without a contribution.
  void stopped(WorkerId worker);
  /// The worker has contributed. Returns whether it has just stopped straggling.
  [[nodiscard]] bool contributed(Instant now, WorkerId worker);

  /// Workers that straggle from now on, in order of id. Looks at all workers.
  [[nodiscard]] std::vector<Straggles> look(Instant now, Version newest);
  /// The next time at which a worker may become late; none: no step is in progress, or no time is known.
  [[nodiscard]] std::optional<Instant> next_look(Instant now) const;

  [[nodiscard]] bool straggles(WorkerId worker) const { return worker.value < members_.size() && members_[worker.value].straggles; }
  [[nodiscard]] std::size_t count() const { return straggling_; }
  [[nodiscard]] std::uint64_t gap(Version newest) const;
  [[nodiscard]] std::uint64_t threshold() const { return threshold_; }
  void threshold(std::uint64_t threshold) { threshold_ = threshold; }
  /// Lower median of the expected step times; 0: not known.
  [[nodiscard]] Duration median() const { return median_; }
  /// The expected time of its next step in median steps, rounded; at least 1, at most the highest threshold.
  [[nodiscard]] std::uint32_t medians(WorkerId worker) const;
  /// Versions made since its base version; 0 when it computes no step.
  [[nodiscard]] std::uint64_t staleness(WorkerId worker, Version newest) const;
  [[nodiscard]] Duration time_in_step(Instant now, WorkerId worker) const { return now - members_[worker.value].began; }
  /// The expected remaining time of its step. An overdue step is expected to take as long again as it is overdue.
  [[nodiscard]] Duration remaining(Instant now, WorkerId worker) const;
  /// Workers that compute on a version older than this, in order of id.
  [[nodiscard]] std::vector<WorkerId> older_than(Version version) const;

 private:
  struct Member {
    bool here = false;
    bool in_step = false;
    bool straggles = false;
    Version held;
    Instant began{};
    Duration expected{};
    std::uint64_t commits = 0;
    std::uint32_t in_time = 0;  // contributions in a row, while the worker straggles
  };
  void find_median();
  void move_threshold(Instant now);
  [[nodiscard]] Duration takes(Instant now, const Member& member) const;
  [[nodiscard]] std::optional<Why> classify(Instant now, const Member& member, Version newest) const;
  void stop_straggling(Member& member);
  void mark(Member& member, bool straggles);

  std::vector<Member> members_;            // by id
  std::size_t straggling_ = 0;             // members
  std::map<Version, std::uint32_t> held_;  // base versions in use, with the number of steps on each
  std::uint64_t most_commits_ = 0;
  std::uint64_t threshold_ = straggling::least_threshold;
  Duration median_{};
  std::vector<Duration> scratch_;
};

}  // namespace motley::policy
