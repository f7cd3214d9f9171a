// Gate `groups`: a barrier inside a group, none between groups, how workers go over, and when a group waits for another.
#include "policy/gate/gate_groups.h"

#include <gtest/gtest.h>

#include <cmath>

#include "policy/constants.h"
#include "policy/gate/gate_driver_for_tests.h"
#include "policy/strategies.h"

namespace motley::policy {
namespace {

using std::chrono::milliseconds;

/// Groups that do not keep out of each other's way: time stands still in most of these tests.
GateGroups::Rules without_turns() {
  GateGroups::Rules rules;
  rules.turns = false;
  return rules;
}

/// Workers 0 and 1 are fast, 2 and 3 take four times as long. They have made nine rounds together and are in the middle of the tenth: 0 and
/// 1 have contributed.
GateDriver about_to_part(const GateGroups::Rules& rules = without_turns()) {
  GateDriver gate(std::make_unique<GateGroups>(rules));
  gate.expected = milliseconds(400);
  gate.expects[0] = gate.expects[1] = milliseconds(100);
  gate.join({0, 1, 2, 3});
  for (std::uint64_t i = 1; i < grouping::profile_steps; ++i)
    for (const std::uint32_t id : {0U, 1U, 2U, 3U}) gate.finish(id);
  gate.finish(0);
  gate.finish(1);
  return gate;
}

/// As above, and everyone is with its group by now and busy.
GateDriver peer_lost(const GateGroups::Rules& rules = without_turns()) {
  GateDriver gate = about_to_part(rules);
  for (const std::uint32_t id : {2U, 3U, 0U, 1U, 2U, 3U, 0U}) gate.finish(id);
  return gate;
}

TEST(GateGroups, AllAreOneBarrierUntilTheyAreMeasured) {
  GateDriver gate(std::make_unique<GateGroups>(without_turns()));
  EXPECT_EQ(gate.join({0, 1}), "release 0 (first_order), 1 (first_order)");
  EXPECT_EQ(gate.finish(1), "hold 1 (others_computing, 1)");
  EXPECT_EQ(gate.finish(0), "apply 0 1; release 0 (barrier_complete), 1 (barrier_complete)");
  EXPECT_EQ(gate.gate().streams(), 1U);
  EXPECT_EQ(gate.gate().cohort({0}), gate.gate().cohort({1}));
}

TEST(GateGroups, AWorkerChangesGroupAfterItHasContributed) {
  GateDriver gate = about_to_part();
  gate.finish(2);
  EXPECT_EQ(gate.finish(3),
            "apply 0 1 2 3; release 0 (barrier_complete), 1 (barrier_complete), 2 (barrier_complete), 3 (barrier_complete)");
  EXPECT_EQ(gate.gate().cohort({0}), 0U) << "it still owes its old group a step";
  EXPECT_EQ(gate.finish(0), "release 0 (first_order)") << "the first of its new group";
  EXPECT_EQ(gate.gate().cohort({0}), 1U);
  EXPECT_EQ(gate.finish(1), "hold 1 (round_in_progress, 1)") << "the second waits for the next round there";
  EXPECT_EQ(gate.finish(2), "hold 2 (others_computing, 1)");
  EXPECT_EQ(gate.finish(3), "apply 0 1 2 3; release 2 (barrier_complete), 3 (barrier_complete)")
      << "what they owed counts where they owed it";
  EXPECT_EQ(gate.finish(0), "apply 0; release 0 (barrier_complete), 1 (barrier_complete)");
  EXPECT_EQ(gate.gate().cohort({0}), gate.gate().cohort({1}));
  EXPECT_NE(gate.gate().cohort({0}), gate.gate().cohort({2}));
}

TEST(GateGroups, ABarrierWithinGroupsAndNoneBetweenThem) {
  GateDriver gate = peer_lost();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(gate.finish(0), "hold 0 (others_computing, 1)");
    EXPECT_EQ(gate.finish(1), "apply 0 1; release 0 (barrier_complete), 1 (barrier_complete)");
  }
  EXPECT_EQ(gate.finish(3), "hold 3 (others_computing, 1)");
  EXPECT_EQ(gate.finish(2), "apply 2 3; release 2 (barrier_complete), 3 (barrier_complete)");
}

TEST(GateGroups, WithoutRegroupingTheyAreStillGroupedOnce) {
  GateGroups::Rules rules = without_turns();
  rules.regroup = false;
  GateDriver gate = peer_lost(rules);
  EXPECT_NE(gate.gate().cohort({0}), gate.gate().cohort({2}));
}

TEST(GateGroups, LosingTheLastOfAGroupDelaysNoOther) {
  GateDriver gate = peer_lost();
  gate.finish(0);
  EXPECT_EQ(gate.leave(1), "apply 0; release 0 (barrier_complete)");
  EXPECT_EQ(gate.leave(0), "");
  EXPECT_EQ(gate.gate().streams(), 1U);
  gate.finish(2);
  EXPECT_EQ(gate.finish(3), "apply 2 3; release 2 (barrier_complete), 3 (barrier_complete)");
}

TEST(GateGroups, ReturnedSamplesReleaseIdleWorkersOfAllGroups) {
  GateDriver gate = peer_lost();
  gate.work = false;
  gate.finish(0);
  gate.finish(1);
  gate.work = true;
  EXPECT_EQ(gate.leave(3), "release 0 (work_returned), 1 (work_returned)");
}

TEST(GateGroups, ANewWorkerJoinsTheSlowestGroup) {
  GateDriver gate = peer_lost();
  gate.expects[4] = milliseconds(100);
  EXPECT_EQ(gate.join({4}), "hold 4 (round_in_progress, 2)");
  EXPECT_EQ(gate.gate().cohort({4}), gate.gate().cohort({2}));
}

// The lead -------------------------------------------------------------------------------------------------------------------------------

constexpr int most_lead = 8;  // updates: four for each of two groups

/// The fast ones make updates until they are held; how many.
int updates_until_held(GateDriver& gate, int most) {
  for (int made = 1; made <= most; ++made) {
    gate.finish(0);
    const std::string answer = gate.finish(1);
    if (answer.find("ahead_of_slowest") != std::string::npos) return made;
  }
  return most + 1;
}

TEST(GateGroups, AGroupFarAheadWaitsUntilTheSlowerHasMadeAnUpdate) {
  GateDriver gate = peer_lost();
  gate.finish(2);
  gate.finish(3);  // level, or nearly
  const int made = updates_until_held(gate, 100);
  EXPECT_GE(made, most_lead);
  EXPECT_LE(made, most_lead + 2);
  EXPECT_EQ(gate.finish(2), "hold 2 (others_computing, 1)") << "half an update is none";
  EXPECT_EQ(gate.finish(3), "apply 2 3; release 2 (barrier_complete), 3 (barrier_complete), 0 (slowest_moved), 1 (slowest_moved)");
  EXPECT_EQ(updates_until_held(gate, 100), 1) << "as far ahead as before";
}

TEST(GateGroups, WithoutHoldNoGroupWaits) {
  GateGroups::Rules rules = without_turns();
  rules.hold = false;
  GateDriver gate = peer_lost(rules);
  EXPECT_EQ(updates_until_held(gate, 100), 101);
}

TEST(GateGroups, AGroupFarAheadIsReleasedWhenOthersLeave) {
  GateDriver gate = peer_lost();
  ASSERT_LE(updates_until_held(gate, 100), 100);
  EXPECT_EQ(gate.leave(2), "");
  EXPECT_EQ(gate.leave(3), "release 0 (barrier_complete), 1 (barrier_complete)");
}

TEST(GateGroups, AGroupFarAheadIsReleasedWhenOthersAreIdle) {
  GateDriver gate = peer_lost();
  ASSERT_LE(updates_until_held(gate, 100), 100);
  gate.finish(2);
  gate.work = false;
  EXPECT_EQ(gate.finish(3), "apply 2 3; release 2 (barrier_complete), 3 (barrier_complete), 0 (slowest_moved), 1 (slowest_moved)");
  gate.work = true;
  EXPECT_EQ(gate.join({4}), "release 2 (first_order), 3 (first_order), 4 (first_order)") << "nobody is stuck";
}

TEST(GateGroups, NoGroupWaitsForIdleOnes) {
  GateDriver gate = peer_lost();
  gate.finish(2);
  gate.work = false;
  gate.finish(3);
  gate.work = true;
  EXPECT_EQ(updates_until_held(gate, 100), 101);
}

// Streams and staleness ------------------------------------------------------------------------------------------------------------------

TEST(GateGroups, StreamsAreTheGroupsAtWork) {
  EXPECT_EQ(about_to_part().gate().streams(), 1U);
  EXPECT_EQ(peer_lost().gate().streams(), 2U);
  GateGroups::Rules rules = without_turns();
  rules.rates = false;
  EXPECT_EQ(peer_lost(rules).gate().streams(), 1U);
}

TEST(GateGroups, StalenessFollowsUpdatesOfOtherGroups) {
  for (const bool look_ahead_more : {true, false}) {
    GateGroups::Rules rules = without_turns();
    rules.look_ahead_more = look_ahead_more;
    rules.hold = false;
    GateDriver gate = peer_lost(rules);
    for (int i = 0; i < 60; ++i) {  // four fast rounds to one slow one
      for (int fast = 0; fast < 4; ++fast) gate.finish(0), gate.finish(1);
      gate.finish(2), gate.finish(3);
    }
    EXPECT_EQ(gate.gate().staleness({2}), look_ahead_more ? 4U : 0U);
    EXPECT_EQ(gate.gate().staleness({0}), 0U) << "a quarter of an update, on the average";
  }
}

// Turns ----------------------------------------------------------------------------------------------------------------------------------

/// From this moment on both groups end their rounds together, every 400 ms; how often the fast ones had to wait.
int waits_in(GateDriver& gate, int begin_ms, int rounds) {
  int waits = 0;
  for (int round = 1; round <= rounds; ++round) {
    gate.finish_at(begin_ms + 400 * round, 2), gate.finish(3);
    gate.finish(0);
    if (gate.finish(1).find("release") != std::string::npos) continue;
    ++waits;
    EXPECT_TRUE(gate.wake && *gate.wake > gate.now) << "it says when";
    if (!gate.wake) return waits;
    const auto due = static_cast<int>(gate.wake->time_since_epoch() / milliseconds(1));
    EXPECT_EQ(gate.wake_at(due - 1), "");
    EXPECT_NE(gate.wake_at(due + 1).find("release 0"), std::string::npos);
  }
  return waits;
}

/// Two groups whose rounds have never begun together, as of 13 s.
GateDriver never_together(bool turns) {
  GateGroups::Rules rules;
  rules.hold = false;
  rules.turns = turns;
  GateDriver gate(std::make_unique<GateGroups>(rules));
  gate.expected = milliseconds(400);
  gate.expects[0] = gate.expects[1] = milliseconds(100);
  gate.join({0, 1, 2, 3});
  for (int round = 1; round <= 10; ++round)
    for (const std::uint32_t id : {0U, 1U, 2U, 3U}) gate.finish_at(1000 * round, id);
  for (const std::uint32_t id : {0U, 1U}) gate.finish_at(11'000, id);
  for (const std::uint32_t id : {2U, 3U}) gate.finish_at(12'000, id);
  gate.finish_at(13'000, 0);
  EXPECT_EQ(gate.gate().streams(), 2U);
  return gate;
}

TEST(GateGroups, GroupsThatCollideThreeTimesAreMovedApart) {
  GateDriver gate = never_together(true);
  EXPECT_EQ(waits_in(gate, 13'000, 2), 0);
  EXPECT_EQ(waits_in(gate, 14'000, 1), 1) << "the third time";
  GateDriver careless = never_together(false);
  EXPECT_EQ(waits_in(careless, 13'000, 20), 0);
}

// Momentum and weights -------------------------------------------------------------------------------------------------------------------

/// A strategy `grouped` whose workers of speeds 4, 4, 1, 1 have found their groups.
Strategy grouped(const Knobs& knobs) {
  Strategy strategy = make_strategy({"grouped", knobs, {32, 32, 32, 32}}, {128, 0.9}).value();
  Decisions decisions;
  std::map<WorkerId, Step> steps;
  const auto carry_out = [&] {
    for (std::size_t i = 0; i < decisions.apply.size(); ++i) strategy.updated(Version{i + 1}, {0.1, 0.1, 1e-3, 0.02});
    for (const Release& release : decisions.release) strategy.ordered({}, release.worker, 32);
    decisions.clear();
  };
  strategy.joined({}, std::vector<WorkerProfile>{{.worker = {0}}, {.worker = {1}}, {.worker = {2}}, {.worker = {3}}}, decisions);
  carry_out();
  for (std::uint64_t round = 0; round <= grouping::profile_steps; ++round)
    for (std::uint32_t w = 0; w < 4; ++w) {
      const Contribution done{
          .worker = {w}, .step = steps[{w}], .report = {.samples = 32, .squared_norm = 1, .compute = milliseconds(w < 2 ? 100 : 400)}};
      steps[{w}] = steps[{w}].next();
      strategy.contributed({}, done, decisions);
      carry_out();
    }
  return strategy;
}

TEST(GateGroups, MomentumAndGainAreThoseOfOneStream) {
  Strategy strategy = grouped({});
  EXPECT_DOUBLE_EQ(strategy.momentum(), std::sqrt(0.9)) << "mu^(1/K)";
  const Apply update{{{{0}, {}, {}, 32, 1, 1.0, {}}, {{1}, {}, {}, 32, 1, 1.0, {}}}};
  std::vector<double> weights(2);
  strategy.weigh(update, weights);
  const double gain = (1 - std::sqrt(0.9)) / (1 - 0.9);
  EXPECT_NEAR(weights[0], gain * 32 / 128, 1e-12);
  EXPECT_NEAR(weights[1], gain * 32 / 128, 1e-12);
  EXPECT_NEAR(strategy.share(update), gain * 64 / 128, 1e-12);
  EXPECT_NEAR(weights[0] / (1 - strategy.momentum()), 32.0 / 128 / (1 - 0.9), 1e-12) << "in time it moves w as far as one stream would";
}

TEST(GateGroups, WithoutRatesMomentumAndWeightsAreThoseOfOneStream) {
  Knobs knobs;
  knobs.without = Off::rates;
  Strategy strategy = grouped(knobs);
  EXPECT_DOUBLE_EQ(strategy.momentum(), 0.9);
  const Apply update{{{{0}, {}, {}, 32, 1, 1.0, {}}}};
  std::vector<double> weights(1);
  strategy.weigh(update, weights);
  EXPECT_NEAR(weights[0], 32.0 / 128, 1e-12);
}

}  // namespace
}  // namespace motley::policy
