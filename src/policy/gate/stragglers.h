// Who straggles: found from how long each step takes and how old the version is that it is computed on.
//
// dhat = max(what a worker's step is expected to take, how long it has been under way);  m = lower median of the expected times
// It straggles when  dhat > 1.3 m and it has fallen behind (another has contributed oftener, or a newer version is there),
//               or   dhat > 5.2 m,
//               or   its version is older than the threshold allows.
// It straggles no more after 3 contributions in a row that each took less than 1.3 m.
// The threshold of the gap moves between 2 and 8 towards the number of median steps that the slowest one under way takes (after DSSP): a
// gap that is only what its speed makes it is none to worry about.
// Cost: O(1) per contribution, O(P) per look at everyone; looks are at least an eighth of the workers' contributions, or 0.1 m, apart.
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
  /// It computes on the newest version from now on.
  void began(Instant now, WorkerId worker, Version newest, Duration expected);
  /// It computes no more, and has nothing to show for it.
  void stopped(WorkerId worker);
  /// It has contributed. True when with this it straggles no more.
  [[nodiscard]] bool contributed(Instant now, WorkerId worker);

  /// Who straggles as of now and did not before, in order of id. Looks at everyone.
  [[nodiscard]] std::vector<Straggles> look(Instant now, Version newest);
  /// When somebody may be late who is not yet; never: nobody is under way, or nothing is known.
  [[nodiscard]] std::optional<Instant> next_look(Instant now) const;

  [[nodiscard]] bool straggles(WorkerId worker) const { return worker.value < members_.size() && members_[worker.value].straggles; }
  [[nodiscard]] std::size_t count() const { return straggling_; }
  [[nodiscard]] std::uint64_t gap(Version newest) const;
  [[nodiscard]] std::uint64_t threshold() const { return threshold_; }
  void threshold(std::uint64_t threshold) { threshold_ = threshold; }
  /// Of what steps are expected to take, lower; 0: not known.
  [[nodiscard]] Duration median() const { return median_; }
  /// How many median steps its next is expected to take, rounded; at least 1, at most the highest threshold.
  [[nodiscard]] std::uint32_t medians(WorkerId worker) const;
  /// The version it computes on is this many behind; 0 when it computes nothing.
  [[nodiscard]] std::uint64_t staleness(WorkerId worker, Version newest) const;
  [[nodiscard]] Duration under_way_for(Instant now, WorkerId worker) const { return now - members_[worker.value].began; }
  /// How long it will still take. Who is overdue is taken to need as long again as it is overdue: nothing better is known of it.
  [[nodiscard]] Duration remaining(Instant now, WorkerId worker) const;
  /// Those under way on a version older than this, in order of id.
  [[nodiscard]] std::vector<WorkerId> older_than(Version version) const;

 private:
  struct Member {
    bool here = false;
    bool under_way = false;
    bool straggles = false;
    Version held;
    Instant began{};
    Duration expected{};
    std::uint64_t commits = 0;
    std::uint32_t in_time = 0;  // contributions in a row, while it straggles
  };
  void find_median();
  void move_threshold(Instant now);
  [[nodiscard]] Duration takes(Instant now, const Member& member) const;
  [[nodiscard]] std::optional<Why> classify(Instant now, const Member& member, Version newest) const;
  void stop_straggling(Member& member);
  void mark(Member& member, bool straggles);

  std::vector<Member> members_;            // by id
  std::size_t straggling_ = 0;             // members
  std::map<Version, std::uint32_t> held_;  // by those under way: how many hold it
  std::uint64_t most_commits_ = 0;
  std::uint64_t threshold_ = straggling::least_threshold;
  Duration median_{};
  std::vector<Duration> scratch_;
};

}  // namespace motley::policy
