// Stragglers: every reason, the end of straggling, the threshold, and the queries about steps in progress.
#include "policy/gate/stragglers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

namespace motley::policy {
namespace {

using std::chrono::milliseconds;

Instant at(int ms) { return Instant{milliseconds(ms)}; }

/// So many workers that all begin at 0 on version 0, with steps that are expected to take so many milliseconds each.
Stragglers begun(const std::vector<int>& expected_ms) {
  Stragglers stragglers;
  for (std::uint32_t w = 0; w < expected_ms.size(); ++w) stragglers.joined({w});
  for (std::uint32_t w = 0; w < expected_ms.size(); ++w) stragglers.began(at(0), {w}, {0}, milliseconds(expected_ms[w]));
  return stragglers;
}

/// Worker, reason, and step time in hundredths of the median.
using Found = std::vector<std::tuple<std::uint32_t, Why, long>>;
Found look(Stragglers& stragglers, Instant now, std::uint64_t newest) {
  Found found;
  for (const auto& [worker, is_now, why, times] : stragglers.look(now, {newest})) {
    EXPECT_TRUE(is_now);
    found.emplace_back(worker.value, why, std::lround(100 * times));
  }
  return found;
}

/// Makes a step that takes so long, beginning at `from`; true when with this it straggles no more.
bool makes_step(Stragglers& stragglers, std::uint32_t worker, int from, int takes) {
  stragglers.began(at(from), {worker}, {0}, milliseconds(100));
  return stragglers.contributed(at(from + takes), {worker});
}

// The median -----------------------------------------------------------------------------------------------------------------------------

TEST(Stragglers, TheMedianIsTheLowerMedianOfExpectedTimes) {
  Stragglers four = begun({400, 100, 200, 300});
  EXPECT_EQ(four.median(), Duration{0}) << "nobody has looked yet";
  (void)four.look(at(1), {0});
  EXPECT_EQ(four.median(), milliseconds(200));
  four.left({1});
  (void)four.look(at(2), {0});
  EXPECT_EQ(four.median(), milliseconds(300)) << "of those who are here";
}

TEST(Stragglers, NoWorkerStragglesUntilAllAreMeasured) {
  Stragglers stragglers = begun({100, 100, 0});
  EXPECT_EQ(look(stragglers, at(10'000), 100), Found{});
  EXPECT_EQ(stragglers.median(), Duration{0});
  EXPECT_EQ(stragglers.next_look(at(0)), std::nullopt);
  EXPECT_FALSE(stragglers.contributed(at(150), {2}));
  stragglers.began(at(150), {2}, {0}, {});
  (void)stragglers.look(at(150), {0});
  EXPECT_EQ(stragglers.median(), milliseconds(100)) << "what its first step took is what the next is expected to take";
}

TEST(Stragglers, OneAloneCannotStraggle) {
  Stragglers stragglers = begun({100});
  EXPECT_EQ(look(stragglers, at(10'000), 100), Found{});
}

// Reasons --------------------------------------------------------------------------------------------------------------------------------

TEST(Stragglers, LateAndBehindWhenAnotherContributedMoreOften) {
  Stragglers stragglers = begun({100, 100, 100});
  EXPECT_EQ(look(stragglers, at(140), 0), Found{}) << "all are late: nobody is behind";
  EXPECT_FALSE(stragglers.contributed(at(140), {0}));
  stragglers.began(at(140), {0}, {0}, milliseconds(100));
  EXPECT_EQ(look(stragglers, at(130), 0), Found{}) << "1.3 medians are still in time";
  EXPECT_EQ(look(stragglers, at(140), 0), (Found{{1, Why::late_and_behind, 140}, {2, Why::late_and_behind, 140}}));
  EXPECT_EQ(look(stragglers, at(150), 0), Found{}) << "told once";
  EXPECT_EQ(stragglers.count(), 2U);
  EXPECT_TRUE(stragglers.straggles({1}) && stragglers.straggles({2}));
}

TEST(Stragglers, LateAndBehindWhenThereIsANewerVersion) {
  Stragglers stragglers = begun({100, 100, 100});
  stragglers.began(at(100), {0}, {1}, milliseconds(100));
  stragglers.began(at(100), {1}, {1}, milliseconds(100));
  EXPECT_EQ(look(stragglers, at(131), 1), (Found{{2, Why::late_and_behind, 131}}));
}

TEST(Stragglers, AStepExpectedToTakeLongIsLateFromItsBeginning) {
  Stragglers stragglers = begun({100, 100, 200});
  EXPECT_FALSE(stragglers.contributed(at(100), {0}));
  EXPECT_EQ(look(stragglers, at(100), 0), (Found{{2, Why::late_and_behind, 200}}));
}

TEST(Stragglers, VeryLateWhetherOrNotTheWorkerIsBehind) {
  Stragglers stragglers = begun({100, 100, 100});
  stragglers.stopped({0});
  stragglers.stopped({1});
  EXPECT_EQ(look(stragglers, at(520), 0), Found{});
  EXPECT_EQ(look(stragglers, at(521), 0), (Found{{2, Why::very_late, 521}}));
}

TEST(Stragglers, AVersionOlderThanTheThresholdIsTooOld) {
  Stragglers stragglers = begun({100, 100, 100});
  stragglers.began(at(10), {0}, {1}, milliseconds(100));
  EXPECT_EQ(look(stragglers, at(20), 2), Found{}) << "a gap of 2 is what the threshold allows";
  EXPECT_EQ(look(stragglers, at(20), 3), (Found{{1, Why::version_too_old, 100}, {2, Why::version_too_old, 100}}));
}

// Recovery -------------------------------------------------------------------------------------------------------------------------------

/// Worker 2 of three straggles; the median is 100 ms.
Stragglers with_a_straggler() {
  Stragglers stragglers = begun({100, 100, 100});
  EXPECT_FALSE(stragglers.contributed(at(100), {0}));
  EXPECT_FALSE(stragglers.contributed(at(100), {1}));
  EXPECT_EQ(stragglers.look(at(140), {1}).size(), 1U);
  EXPECT_FALSE(stragglers.contributed(at(200), {2})) << "that was late";
  return stragglers;
}

TEST(Stragglers, ThreeContributionsInTimeEndStraggling) {
  Stragglers stragglers = with_a_straggler();
  EXPECT_FALSE(makes_step(stragglers, 2, 200, 129));
  EXPECT_FALSE(makes_step(stragglers, 2, 400, 129));
  EXPECT_FALSE(makes_step(stragglers, 2, 600, 130)) << "1.3 medians are not less than 1.3 medians";
  EXPECT_FALSE(makes_step(stragglers, 2, 800, 129));
  EXPECT_FALSE(makes_step(stragglers, 2, 1000, 100));
  EXPECT_TRUE(stragglers.straggles({2}));
  EXPECT_TRUE(makes_step(stragglers, 2, 1200, 129));
  EXPECT_FALSE(stragglers.straggles({2}));
  EXPECT_FALSE(makes_step(stragglers, 2, 1400, 129)) << "told once";
}

TEST(Stragglers, AWorkerThatCaughtUpStartsWithACleanRecord) {
  Stragglers stragglers = with_a_straggler();
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(makes_step(stragglers, 0, 200 + 100 * i, 100));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(makes_step(stragglers, 2, 2200 + 100 * i, 100), i == 2);
  stragglers.began(at(3000), {2}, {0}, milliseconds(100));
  EXPECT_EQ(look(stragglers, at(3140), 0), Found{}) << "late, but nobody has contributed oftener since";
}

TEST(Stragglers, AWorkerThatLeavesStragglesNoMore) {
  Stragglers stragglers = with_a_straggler();
  stragglers.left({2});
  EXPECT_EQ(stragglers.count(), 0U);
  EXPECT_EQ(look(stragglers, at(10'000), 0), Found{});
}

TEST(Stragglers, ANewWorkerIsNotBehindTheOthers) {
  Stragglers stragglers = begun({100, 100});
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(makes_step(stragglers, 0, 100 * i, 100));
  EXPECT_FALSE(makes_step(stragglers, 1, 0, 500));
  stragglers.joined({2});
  stragglers.began(at(500), {2}, {0}, milliseconds(200));
  EXPECT_EQ(look(stragglers, at(500), 0), Found{}) << "twice the median, but nobody has contributed since it came";
}

// The threshold --------------------------------------------------------------------------------------------------------------------------

TEST(Stragglers, TheThresholdFollowsTheSlowestStepOneByOne) {
  Stragglers stragglers = begun({100, 100, 550});
  std::vector<std::uint64_t> update_norm;
  const auto look_so_often = [&](int looks) {
    for (int i = 0; i < looks; ++i) {
      (void)stragglers.look(at(1), {0});
      update_norm.push_back(stragglers.threshold());
    }
  };
  EXPECT_EQ(stragglers.threshold(), straggling::least_threshold);
  look_so_often(5);
  stragglers.began(at(0), {2}, {0}, milliseconds(5000));
  look_so_often(5);
  stragglers.began(at(0), {2}, {0}, milliseconds(100));
  look_so_often(8);
  EXPECT_EQ(update_norm, (std::vector<std::uint64_t>{3, 4, 5, 5, 5, 6, 7, 8, 8, 8, 7, 6, 5, 4, 3, 2, 2, 2}));
}

TEST(Stragglers, OnlyStepsInProgressMoveTheThreshold) {
  Stragglers stragglers = begun({100, 100, 550});
  stragglers.stopped({2});
  (void)stragglers.look(at(1), {0});
  EXPECT_EQ(stragglers.threshold(), 2U);
}

// Steps in progress ---------------------------------------------------------------------------------------------------------------------

TEST(Stragglers, TheGapReachesToTheOldestBaseVersionInUse) {
  Stragglers stragglers = begun({100, 100, 100});
  EXPECT_EQ(stragglers.gap({5}), 5U);
  stragglers.began(at(0), {0}, {3}, milliseconds(100));
  EXPECT_EQ(stragglers.gap({5}), 5U) << "two still hold the oldest";
  EXPECT_FALSE(stragglers.contributed(at(1), {1}));
  stragglers.stopped({2});
  EXPECT_EQ(stragglers.gap({5}), 2U);
  EXPECT_EQ(stragglers.staleness({0}, {5}), 2U);
  EXPECT_EQ(stragglers.staleness({1}, {5}), 0U) << "it computes nothing";
  stragglers.left({0});
  EXPECT_EQ(stragglers.gap({5}), 0U);
}

TEST(Stragglers, OlderThanListsStepsOnOlderVersions) {
  Stragglers stragglers = begun({100, 100, 100, 100});
  stragglers.began(at(0), {1}, {4}, milliseconds(100));
  stragglers.stopped({2});
  EXPECT_EQ(stragglers.older_than({4}), (std::vector<WorkerId>{{0}, {3}}));
  EXPECT_EQ(stragglers.older_than({5}), (std::vector<WorkerId>{{0}, {1}, {3}}));
  EXPECT_TRUE(stragglers.older_than({0}).empty());
}

TEST(Stragglers, RemainingTimeOfAnOverdueStepIsItsExcess) {
  const Stragglers stragglers = begun({100});
  EXPECT_EQ(stragglers.remaining(at(30), {0}), milliseconds(70));
  EXPECT_EQ(stragglers.remaining(at(100), {0}), milliseconds(0));
  EXPECT_EQ(stragglers.remaining(at(140), {0}), milliseconds(40));
  EXPECT_EQ(stragglers.time_in_step(at(140), {0}), milliseconds(140));
}

TEST(Stragglers, MediansAreBetweenOneAndTheHighestThreshold) {
  Stragglers stragglers = begun({100, 100, 100, 260, 5000});
  EXPECT_EQ(stragglers.medians({3}), 1U) << "not known";
  (void)stragglers.look(at(0), {0});
  EXPECT_EQ(stragglers.medians({0}), 1U);
  EXPECT_EQ(stragglers.medians({3}), 3U);
  EXPECT_EQ(stragglers.medians({4}), straggling::most_threshold);
}

TEST(Stragglers, TheNextLookIsWhenAWorkerMayBecomeLate) {
  Stragglers stragglers = begun({100, 100, 100});
  (void)stragglers.look(at(1), {0});
  EXPECT_EQ(stragglers.next_look(at(1)), at(130) + Duration{1});
  EXPECT_FALSE(stragglers.contributed(at(100), {0}));
  EXPECT_EQ(look(stragglers, at(130), 0), Found{});
  EXPECT_EQ(look(stragglers, *stragglers.next_look(at(130)), 0).size(), 2U) << "and then they are";
}

TEST(Stragglers, ALateWorkerIsCheckedAgainWhenItMayBeVeryLate) {
  Stragglers stragglers = begun({100, 100});
  (void)stragglers.look(at(131), {0});
  EXPECT_EQ(stragglers.next_look(at(131)), at(520) + Duration{1});
  EXPECT_EQ(look(stragglers, at(520) + Duration{1}, 0).size(), 2U);
  EXPECT_EQ(stragglers.next_look(at(521)), std::nullopt) << "both straggle already";
}

TEST(Stragglers, WithoutStepsInProgressThereIsNoNextLook) {
  Stragglers stragglers = begun({100, 100});
  (void)stragglers.look(at(1), {0});
  stragglers.stopped({0});
  stragglers.stopped({1});
  EXPECT_EQ(stragglers.next_look(at(1)), std::nullopt);
}

}  // namespace
}  // namespace motley::policy
