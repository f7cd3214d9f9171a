// Gate `states`: each rule switched off alone, and alignment tests that end after their worker has left. tests/scenarios/adaptive.txt goes
// through all states.
#include "policy/gate/gate_states.h"

#include <gtest/gtest.h>

#include "policy/gate/gate_driver_for_tests.h"

namespace motley::policy {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t over_stale_gap = 3;

/// Rules of a gate whose workers are soon over-stale, one of them changed.
GateStates::Rules rules(void (*change)(GateStates::Rules&) = [](GateStates::Rules&) {}) {
  GateStates::Rules rules;
  rules.over_stale_gap = over_stale_gap;
  change(rules);
  return rules;
}

/// Three workers begin at 0: two whose steps take 100 ms, and worker 2, whose steps take this long.
GateDriver three(const GateStates::Rules& rules, int straggler_ms) {
  GateDriver gate(std::make_unique<GateStates>(rules));
  gate.expected = milliseconds(100);
  gate.expects[2] = milliseconds(straggler_ms);
  gate.join({0, 1, 2});
  return gate;
}

/// Workers 0 and 1 are done at 100, 200, ... ms, the last time at this moment; what the gate says then.
std::string round_until(GateDriver& gate, int ms) {
  std::string answer;
  for (int now = 100; now <= ms; now += 100) {
    gate.finish_at(now, 0);
    answer = gate.finish_at(now, 1);
  }
  return answer;
}

// Lagging --------------------------------------------------------------------------------------------------------------------------------

/// The decision about a straggler's contribution that is so many versions late.
std::string late_by(const GateStates::Rules& rules, int versions) {
  GateDriver gate = three(rules, 100 * versions + 50);
  round_until(gate, 100 * versions);
  return gate.finish_at(100 * versions + 50, 2);
}

TEST(States, AStragglersContributionIsAppliedOnArrival) {
  EXPECT_EQ(late_by(rules(), 2), "apply 2 (apart, compensated, *0.8); release 2 (on_arrival)");
  EXPECT_EQ(late_by(rules(), 3), "apply 2 (apart, compensated, *0.667); release 2 (on_arrival)");
}

TEST(States, OneVersionLateIsAsGoodAsFresh) { EXPECT_EQ(late_by(rules(), 1), "apply 2; release 2 (on_arrival)"); }

TEST(States, WithoutBypassAStragglerEntersTheMomentum) {
  EXPECT_EQ(late_by(rules([](auto& r) { r.bypass_momentum = false; }), 2), "apply 2 (compensated, *0.8); release 2 (on_arrival)");
}

TEST(States, WithoutSoftenAStragglerCountsInFull) {
  EXPECT_EQ(late_by(rules([](auto& r) { r.soften = false; }), 2), "apply 2 (apart, compensated); release 2 (on_arrival)");
}

TEST(States, WithoutCompensateNothingIsKeptForIt) {
  const auto without = rules([](auto& r) { r.compensate = false; });
  EXPECT_EQ(late_by(without, 2), "apply 2 (apart, *0.8); release 2 (on_arrival)");
  EXPECT_FALSE(GateStates(without).compensates());
  EXPECT_TRUE(GateStates(rules()).compensates());
}

TEST(States, AStragglersLookAheadFollowsItsStepTime) {
  GateDriver gate = three(rules(), 300);
  EXPECT_EQ(gate.gate().staleness({2}), 0U) << "it does not straggle yet";
  round_until(gate, 100);
  EXPECT_EQ(gate.gate().staleness({2}), 3U);
  EXPECT_EQ(gate.gate().staleness({0}), 0U);
  EXPECT_EQ(gate.gate().cohort({2}), std::nullopt) << "and is its own";
  EXPECT_EQ(gate.gate().cohort({0}), gate.gate().cohort({1}));
  EXPECT_TRUE(gate.gate().cohort({0}).has_value());
  GateDriver blind = three(rules([](auto& r) { r.look_ahead_more = false; }), 300);
  round_until(blind, 100);
  EXPECT_EQ(blind.gate().staleness({2}), 0U);
}

// Over-stale -----------------------------------------------------------------------------------------------------------------------------

TEST(States, AnOverStaleWorkerFarFromDoneIsCancelled) {
  GateDriver gate = three(rules(), 520);
  EXPECT_EQ(round_until(gate, 400), "apply 0 1; cancel 2 (over_stale); release 2 (on_arrival), 0 (barrier_complete), 1 (barrier_complete)");
  EXPECT_EQ(gate.finish_at(500, 0), "hold 0 (others_computing, 1)");
  EXPECT_EQ(gate.finish_at(500, 1), "apply 0 1; release 0 (barrier_complete), 1 (barrier_complete)") << "it is on a new version now";
}

TEST(States, WithoutCancelOthersWaitForTheOverStaleWorker) {
  GateDriver gate = three(rules([](auto& r) { r.cancel = false; }), 520);
  EXPECT_EQ(round_until(gate, 400), "apply 0 1; hold 0 (over_stale_ahead, 4), 1 (over_stale_ahead, 4)");
}

TEST(States, OthersWaitAtMostAMedianStepForAnOverStaleWorker) {
  GateDriver gate = three(rules(), 440);
  EXPECT_EQ(round_until(gate, 400), "apply 0 1; hold 0 (over_stale_ahead, 4), 1 (over_stale_ahead, 4)");
  EXPECT_EQ(gate.wake, Instant{milliseconds(500)});
  EXPECT_EQ(gate.wake_at(499), "cancel 2 (over_stale); release 2 (on_arrival), 0 (slowest_moved), 1 (slowest_moved)")
      << "overdue for longer than half a median";
  GateDriver patient = three(rules([](auto& r) { r.cancel = false; }), 440);
  round_until(patient, 400);
  EXPECT_EQ(patient.wake_at(499), "");
  EXPECT_EQ(patient.wake_at(500), "release 0 (waited_long_enough), 1 (waited_long_enough)");
}

TEST(States, WithoutHoldNoWorkerWaitsForTheOverStale) {
  GateDriver gate = three(rules([](auto& r) { r.hold = false; }), 440);
  EXPECT_EQ(round_until(gate, 400), "apply 0 1; release 0 (barrier_complete), 1 (barrier_complete)");
}

/// Worker 2 has contributed at 440 ms, four versions late, while 0 and 1 were held for it.
GateDriver over_stale(const GateStates::Rules& rules, std::string& answer) {
  GateDriver gate = three(rules, 440);
  round_until(gate, 400);
  answer = gate.finish_at(440, 2);
  return gate;
}

TEST(States, AnOverStaleContributionIsTestedAndCountsLittle) {
  std::string answer;
  GateDriver gate = over_stale(rules(), answer);
  EXPECT_EQ(answer, "test 2; release 0 (slowest_moved), 1 (slowest_moved)") << "its worker waits for the result";
  EXPECT_EQ(gate.test_alignment(2, 0.5), "apply 2 (apart, *0.2); release 2 (on_arrival)");
  EXPECT_EQ(gate.test_alignment(2, 0.5), "") << "tested once";
}

TEST(States, AContributionAgainstTheMomentumIsDropped) {
  for (const double alignment : {0.0, -1.0}) {
    std::string answer;
    GateDriver gate = over_stale(rules(), answer);
    EXPECT_EQ(gate.test_alignment(2, alignment), "drop 2 (against_momentum); release 2 (on_arrival)") << alignment;
  }
}

TEST(States, WithoutTheTestOverStaleCountsAsStraggling) {
  std::string answer;
  over_stale(rules([](auto& r) { r.test_alignment = false; }), answer);
  EXPECT_EQ(answer, "apply 2 (apart, compensated, *0.571); release 2 (on_arrival), 0 (slowest_moved), 1 (slowest_moved)");
}

TEST(States, WithoutBypassAnAlignedContributionEntersTheMomentum) {
  std::string answer;
  GateDriver gate = over_stale(rules([](auto& r) { r.bypass_momentum = false; }), answer);
  EXPECT_EQ(gate.test_alignment(2, 0.5), "apply 2 (*0.2); release 2 (on_arrival)");
}

// Judged after its worker has left -------------------------------------------------------------------------------------------------------

TEST(States, AnAlignedContributionIsAppliedAfterItsWorkerLeft) {
  std::string answer;
  GateDriver gate = over_stale(rules(), answer);
  EXPECT_EQ(gate.leave(2), "");
  EXPECT_EQ(gate.test_alignment(2, 1), "apply 2 (apart, *0.2)");
}

TEST(States, AnOpposedContributionIsDroppedAfterItsWorkerLeft) {
  std::string answer;
  GateDriver gate = over_stale(rules(), answer);
  gate.leave(2);
  EXPECT_EQ(gate.test_alignment(2, -1), "drop 2 (against_momentum)");
  EXPECT_EQ(gate.finish_at(540, 0), "hold 0 (others_computing, 1)") << "the round goes on";
  EXPECT_EQ(gate.finish_at(540, 1), "apply 0 1; release 0 (barrier_complete), 1 (barrier_complete)");
}

TEST(States, DroppedSamplesReleaseIdleWorkers) {
  std::string answer;
  GateDriver gate = over_stale(rules(), answer);
  gate.work = false;
  gate.finish_at(540, 0);
  EXPECT_EQ(gate.finish_at(540, 1), "apply 0 1; release 0 (barrier_complete), 1 (barrier_complete)") << "they find nothing";
  gate.leave(2);
  gate.work = true;
  EXPECT_EQ(gate.test_alignment(2, -1), "drop 2 (against_momentum); release 0 (work_returned), 1 (work_returned)");
}

// Keeping --------------------------------------------------------------------------------------------------------------------------------

TEST(States, TheThresholdIsSavedAndRefusedOutOfBounds) {
  for (const auto& [kept, goes_on_as] : {std::pair<std::uint64_t, std::uint64_t>{5, 5}, {0, 2}, {99, 2}}) {
    GateStates gate(rules());
    const SavedState numbers{{"gate.threshold", kept}};
    StateReader reader(numbers);
    gate.restore(reader);
    EXPECT_EQ(reader.finish().ok(), kept < 99);
    SavedState saved;
    StateWriter writer(saved);
    gate.save(writer);
    EXPECT_EQ(saved, (SavedState{{"gate.threshold", goes_on_as}}));
  }
}

}  // namespace
}  // namespace motley::policy
