// Groups: how workers of known speeds are grouped, when they are grouped again, and which group new workers join.
#include "policy/gate/groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "policy/constants.h"

namespace motley::policy {
namespace {

/// Workers whose steps take exactly what the affine model says, and groups that are told so.
class Crowd {
 public:
  explicit Crowd(const std::vector<double>& speeds, bool regroup = true) : groups(regroup) {
    for (const double speed : speeds) join(speed);
  }

  WorkerId join(double speed) {
    const WorkerId worker{next_++};
    speeds_[worker] = speed;
    monitor.joined(worker);
    groups.joined(worker);
    return worker;
  }
  void leave(WorkerId worker) {
    speeds_.erase(worker);
    groups.left(worker);
  }
  void set_speed(WorkerId worker, double speed) { speeds_.at(worker) = speed; }

  void step(WorkerId worker) {
    constexpr std::uint32_t samples = 64;
    monitor.observe({.worker = worker, .report = {.samples = samples, .compute = from_seconds(samples / (1000 * speeds_.at(worker)))}});
    groups.measured(worker, monitor);
  }
  /// Everyone makes so many steps, by turns.
  void rounds(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i)
      for (const auto& [worker, speed] : speeds_) step(worker);
  }

  /// By id, of those who are here.
  [[nodiscard]] std::vector<Group> peer_lost() const {
    std::vector<Group> result;
    for (const auto& [worker, speed] : speeds_) result.push_back(groups.of(worker));
    return result;
  }
  /// Of the fastest over the slowest, in the group where that is greatest.
  [[nodiscard]] double widest_spread() const {
    double widest = 1;
    for (const auto& [a, speed_of_a] : speeds_)
      for (const auto& [b, speed_of_b] : speeds_)
        if (groups.of(a) == groups.of(b)) widest = std::max(widest, speed_of_a / speed_of_b);
    return widest;
  }

  Monitor monitor;
  Groups groups;

 private:
  std::map<WorkerId, double> speeds_;  // thousands of samples a second
  std::uint32_t next_ = 0;
};

using PeerLost = std::vector<Group>;
constexpr WorkerId ann{0};

// The first time -------------------------------------------------------------------------------------------------------------------------

TEST(Groups, AllAreOneGroupUntilMeasuredTenTimes) {
  Crowd crowd({4, 4, 2, 1});
  crowd.rounds(9);
  for (int i = 0; i < 50; ++i) crowd.step(ann);
  EXPECT_EQ(crowd.groups.groupings(), 0U) << "one that hurries ahead does not count for the others";
  EXPECT_EQ(crowd.groups.count(), 1U);
  EXPECT_EQ(crowd.peer_lost(), (PeerLost{0, 0, 0, 0}));
  crowd.rounds(1);
  EXPECT_EQ(crowd.groups.groupings(), 1U);
  EXPECT_EQ(crowd.groups.count(), 2U);
}

TEST(Groups, SpeedsFourFourTwoOneMakeTwoGroupsSlowestFirst) {
  Crowd crowd({4, 4, 2, 1});
  crowd.rounds(grouping::profile_steps);
  EXPECT_EQ(crowd.peer_lost(), (PeerLost{1, 1, 0, 0}));
}

TEST(Groups, EightWorkersOfFourSpeedsMakeTwoGroupsWithinTheSpread) {
  Crowd crowd({8, 8, 4, 4, 4, 2, 1, 1});
  crowd.rounds(grouping::profile_steps);
  EXPECT_EQ(crowd.groups.count(), 2U);
  EXPECT_LE(crowd.widest_spread(), grouping::most_spread);
  EXPECT_EQ(crowd.peer_lost(), (PeerLost{1, 1, 1, 1, 1, 0, 0, 0}));
}

TEST(Groups, EqualsStayTogether) {
  for (const std::size_t workers : {1U, 2U, 3U, 8U}) {
    Crowd crowd(std::vector<double>(workers, 3.0));
    crowd.rounds(500);
    EXPECT_EQ(crowd.groups.count(), 1U) << workers << " workers";
    EXPECT_EQ(crowd.groups.groupings(), 1U) << workers << " workers";
  }
}

TEST(Groups, AreNeverMoreThanFour) {
  Crowd crowd({1, 3, 9, 27});
  crowd.rounds(grouping::profile_steps);
  EXPECT_EQ(crowd.groups.count(), grouping::most_groups);
  Crowd wider({1, 3, 9, 27, 81, 243});
  wider.rounds(grouping::profile_steps);
  EXPECT_LE(wider.groups.count(), grouping::most_groups);
}

// Again ----------------------------------------------------------------------------------------------------------------------------------

/// Own steps of this worker, everyone making as many, until it is with others; `most` when that does not happen.
std::uint64_t steps_until_regrouped(Crowd& crowd, std::uint64_t most) {
  const std::uint64_t before = crowd.groups.groupings();
  for (std::uint64_t step = 1; step <= most; ++step) {
    crowd.rounds(1);
    if (crowd.groups.groupings() > before) return step;
  }
  return most + 1;
}

TEST(Groups, AWorkerThreeTimesSlowerIsRegroupedWithinAHundredSteps) {
  Crowd crowd({4, 4, 4, 1.3, 1.3});
  crowd.rounds(grouping::profile_steps + grouping::rest);
  ASSERT_EQ(crowd.peer_lost(), (PeerLost{1, 1, 1, 0, 0}));
  crowd.set_speed(ann, 4.0 / 3);
  EXPECT_LE(steps_until_regrouped(crowd, 100), 100U);
  EXPECT_EQ(crowd.peer_lost(), (PeerLost{0, 1, 1, 0, 0}));
  crowd.rounds(1000);
  EXPECT_EQ(crowd.groups.groupings(), 2U) << "and that is all";
}

TEST(Groups, RegroupingWaitsForRestAndPatience) {
  Crowd crowd({4, 4, 4, 1.3, 1.3});
  crowd.rounds(grouping::profile_steps);
  crowd.set_speed(ann, 4.0 / 3);
  const std::uint64_t steps = steps_until_regrouped(crowd, 200);
  EXPECT_GE(steps, grouping::rest - 1) << "a hundred steps after the last time";
  EXPECT_LE(steps, grouping::rest + 1);
  crowd.rounds(grouping::rest);
  crowd.set_speed(ann, 4);
  EXPECT_GE(steps_until_regrouped(crowd, 200), grouping::patience) << "twenty steps of its own";
  EXPECT_EQ(crowd.peer_lost(), (PeerLost{1, 1, 1, 0, 0})) << "and back";
}

TEST(Groups, AShortSlowPeriodChangesNothing) {
  Crowd crowd({4, 4, 4, 1.3, 1.3});
  crowd.rounds(200);
  crowd.set_speed(ann, 4.0 / 3);
  crowd.rounds(grouping::patience - 2);
  crowd.set_speed(ann, 4);
  crowd.rounds(300);
  EXPECT_EQ(crowd.groups.groupings(), 1U);
}

TEST(Groups, NoWorkerMovesWhenAllChangeAlike) {
  Crowd crowd({4, 4, 4, 1.3, 1.3});
  crowd.rounds(200);
  for (std::uint32_t w = 0; w < 3; ++w) crowd.set_speed({w}, 2.1);
  crowd.rounds(300);
  EXPECT_EQ(crowd.groups.groupings(), 1U) << "its group has changed with it";
}

TEST(Groups, WithoutRegroupingTheFirstGroupsStay) {
  Crowd crowd({4, 4, 4, 1.3, 1.3}, false);
  crowd.rounds(200);
  crowd.set_speed(ann, 4.0 / 3);
  crowd.rounds(500);
  EXPECT_EQ(crowd.peer_lost(), (PeerLost{1, 1, 1, 0, 0}));
  EXPECT_EQ(crowd.groups.groupings(), 1U);
}

// Comings and goings ---------------------------------------------------------------------------------------------------------------------

TEST(Groups, ANewWorkerJoinsTheSlowestGroupUntilItIsMeasured) {
  Crowd crowd({4, 4, 1, 1});
  crowd.rounds(grouping::profile_steps);
  ASSERT_EQ(crowd.peer_lost(), (PeerLost{1, 1, 0, 0}));
  const WorkerId fast = crowd.join(3.5);
  const WorkerId slow = crowd.join(1.2);
  for (std::uint64_t i = 1; i < grouping::profile_steps; ++i) {
    crowd.step(fast);
    crowd.step(slow);
    EXPECT_EQ(crowd.groups.of(fast), 0U) << "after " << i << " steps";
  }
  crowd.step(fast);
  crowd.step(slow);
  EXPECT_EQ(crowd.groups.of(fast), 1U);
  EXPECT_EQ(crowd.groups.of(slow), 0U);
  EXPECT_EQ(crowd.groups.groupings(), 1U) << "the others stay where they are";
}

TEST(Groups, TheFirstGroupingWaitsForNewWorkers) {
  Crowd crowd({4, 4, 1});
  crowd.rounds(9);
  const WorkerId late = crowd.join(1);
  crowd.rounds(9);
  EXPECT_EQ(crowd.groups.groupings(), 0U);
  crowd.leave(late);
  crowd.rounds(1);
  EXPECT_EQ(crowd.peer_lost(), (PeerLost{1, 1, 0})) << "unless it leaves";
}

TEST(Groups, AnEmptyGroupGetsNoNewWorker) {
  Crowd crowd({4, 4, 1, 1});
  crowd.rounds(grouping::profile_steps);
  crowd.leave({0});
  crowd.leave({1});
  const WorkerId fast = crowd.join(4);
  for (std::uint64_t i = 0; i < grouping::profile_steps; ++i) crowd.step(fast);
  EXPECT_EQ(crowd.groups.of(fast), 0U) << "the nearest of those that have members";
}

TEST(Groups, WorkersThatLeftDoNotAffectDrift) {
  Crowd crowd({4, 4, 4, 1.3, 1.3});
  crowd.rounds(200);
  crowd.set_speed(ann, 4.0 / 1.9);  // strays, against the others of its group
  crowd.rounds(grouping::patience - 5);
  crowd.leave(ann);
  crowd.rounds(300);
  EXPECT_EQ(crowd.groups.groupings(), 1U) << "what it had strayed went with it";
  const WorkerId profile = crowd.join(2.3);  // nearer to 4 than to 1.3, in logarithms; 4/1.9 was not
  for (std::uint64_t i = 0; i < grouping::profile_steps; ++i) crowd.step(profile);
  EXPECT_EQ(crowd.groups.of(profile), 1U) << "and so did its speed: the mean is that of those who are left";
}

TEST(Groups, GroupsStayWhenAllWorkersAreReplaced) {
  Crowd crowd({4, 1});
  crowd.rounds(grouping::profile_steps);
  crowd.leave({0});
  crowd.leave({1});
  crowd.join(2);
  crowd.join(2);
  crowd.rounds(50);
  const std::vector<Group> peer_lost = crowd.peer_lost();
  EXPECT_EQ(std::set(peer_lost.begin(), peer_lost.end()).size(), 1U) << "equals are together";
}

}  // namespace
}  // namespace motley::policy
