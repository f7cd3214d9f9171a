// Gate `all` with an overlap: at most two rounds in progress, under joins, losses, refusals and changes of the overlap.
#include <gtest/gtest.h>

#include "policy/batching/equal_batching.h"
#include "policy/gate/gate_all.h"
#include "policy/gate/gate_driver_for_tests.h"
#include "policy/small_chief_for_tests.h"

namespace motley::policy {
namespace {

struct Overlap : testing::Test {
  std::unique_ptr<GateAll> made = std::make_unique<GateAll>();
  GateAll& all = *made;
  GateDriver gate{std::move(made)};

  void SetUp() override { all.overlap(1); }
};

const std::string both = "0 (barrier_complete), 1 (barrier_complete)";

TEST_F(Overlap, AtMostTwoRoundsAreInProgress) {
  EXPECT_EQ(gate.join({0, 1}), "release 0 (first_order), 1 (first_order), 0 (first_order), 1 (first_order)");
  EXPECT_EQ(gate.finish(0), "") << "it goes on with the second round";
  EXPECT_EQ(gate.finish(0), "hold 0 (others_computing, 1)") << "the third has to wait for the first";
  EXPECT_EQ(gate.finish(1), "apply 0 1; release " + both);
  EXPECT_EQ(gate.finish(0), "hold 0 (others_computing, 1)") << "the fourth has to wait for the second";
  EXPECT_EQ(gate.finish(1), "apply 0 1; release " + both);
}

TEST_F(Overlap, ContributionsOfTheSecondRoundWaitForTheFirst) {
  gate.join({0, 1, 2});
  gate.finish(0);
  gate.finish(0);
  gate.finish(1);
  EXPECT_EQ(gate.finish(1), "hold 1 (others_computing, 1)") << "the second round has two of three, the first is still first";
  EXPECT_EQ(gate.finish(2), "apply 0 1 2; release 0 (barrier_complete), 1 (barrier_complete), 2 (barrier_complete)");
  EXPECT_EQ(gate.finish(2), "apply 0 1 2; release 0 (barrier_complete), 1 (barrier_complete), 2 (barrier_complete)");
}

TEST_F(Overlap, BeginsWithTheNextRelease) {
  all.overlap(0);
  gate.join({0, 1});
  all.overlap(1);
  EXPECT_EQ(gate.finish(0), "hold 0 (others_computing, 1)");
  EXPECT_EQ(gate.finish(1), "apply 0 1; release " + both + ", " + both);
}

TEST_F(Overlap, EndsAfterBothRoundsComplete) {
  gate.join({0, 1});
  all.overlap(0);
  EXPECT_EQ(gate.finish(0), "");
  EXPECT_EQ(gate.finish(1), "apply 0 1") << "the second round is in progress already";
  EXPECT_EQ(gate.finish(0), "hold 0 (others_computing, 1)");
  EXPECT_EQ(gate.finish(1), "apply 0 1; release " + both) << "one round from now on";
}

TEST_F(Overlap, ALostWorkerIsAwaitedInNeitherRound) {
  gate.join({0, 1, 2});
  gate.finish(0);
  gate.finish(0);
  gate.finish(1);
  gate.finish(1);
  EXPECT_EQ(gate.leave(2), "apply 0 1 | 0 1; release " + both + ", " + both);
}

TEST_F(Overlap, AWorkerLostInTheSecondRoundCountsInTheFirst) {
  gate.join({0, 1});
  gate.finish(0);
  EXPECT_EQ(gate.leave(0), "");
  EXPECT_EQ(gate.finish(1), "apply 0 1; release 1 (barrier_complete)");
  EXPECT_EQ(gate.finish(1), "apply 1; release 1 (barrier_complete)");
}

TEST_F(Overlap, WorkIsReleasedAgainWhenAllBusyWorkersAreLost) {
  gate.join({0});
  EXPECT_EQ(gate.join({1}), "hold 1 (round_in_progress, 1)");
  EXPECT_EQ(gate.leave(0), "release 1 (work_returned), 1 (work_returned)");
}

TEST_F(Overlap, ARefusedWorkerTakesPartInTheOtherRound) {
  gate.join({0, 1});
  EXPECT_EQ(gate.refuse(0), "") << "it has another step to do";
  EXPECT_EQ(gate.join({2}), "hold 2 (round_in_progress, 2)") << "both are still busy";
  gate.leave(2);
  EXPECT_EQ(gate.finish(0), "hold 0 (others_computing, 1)");
  EXPECT_EQ(gate.finish(1), "apply 1; release " + both);
  EXPECT_EQ(gate.finish(1), "apply 0 1; release " + both);
}

TEST_F(Overlap, ARoundInWhichAllAreRefusedMakesNoUpdate) {
  gate.join({0, 1});
  gate.refuse(0);
  EXPECT_EQ(gate.refuse(1), "release 0 (work_returned), 1 (work_returned)");
  gate.finish(0);
  EXPECT_EQ(gate.finish(1), "apply 0 1; release " + both);
}

TEST_F(Overlap, WithoutWorkAllWorkersIdleUntilThereIsSome) {
  gate.join({0, 1});
  gate.finish(0);
  gate.finish(0);
  gate.work = false;
  EXPECT_EQ(gate.finish(1), "apply 0 1; release " + both) << "and finds nothing";
  EXPECT_EQ(gate.finish(1), "apply 0 1; release " + both + ", " + both);
  gate.work = true;
  EXPECT_EQ(gate.join({2}), "release 0 (first_order), 1 (first_order), 2 (first_order), 0 (first_order), 1 (first_order), 2 (first_order)");
}

TEST_F(Overlap, NewAndRefusedWorkersAreReleasedWhenOverlapBegins) {
  all.overlap(0);
  gate.join({0});
  all.overlap(1);
  EXPECT_EQ(gate.join({1}), "release 0 (first_order), 1 (first_order)") << "into the second round";
  all.overlap(0);
  gate.leave(1);
  EXPECT_EQ(gate.finish(0), "apply 0");
  EXPECT_EQ(gate.join({2}), "hold 2 (round_in_progress, 1)");
  all.overlap(1);
  EXPECT_EQ(gate.refuse(0), "release 0 (work_returned), 2 (work_returned), 0 (work_returned), 2 (work_returned)");
}

/// Overlaps, or not, as a stream says at every update.
struct Fickle : FixedCommunication {
  Fickle(std::uint64_t seed, std::uint64_t highest) : rng(seed, "fickle"), most(highest) {}
  void updated(const Monitor&, const CommunicationInputs&) override { now = static_cast<std::uint32_t>(rng.below(most + 1)); }
  [[nodiscard]] std::uint32_t overlap() const override { return now; }
  Rng rng;
  std::uint64_t most;
  std::uint32_t now = 0;
};

/// Comings, goings, refusals and finished steps in any order, then everything is finished.
SmallChief whole_incarnation(Strategy strategy, std::uint64_t seed) {
  Rng rng(seed, "overlap");
  SmallChief chief(std::move(strategy), 3000);
  chief.join(1 + static_cast<std::uint32_t>(rng.below(5)));
  for (int i = 0; i < 300 && !testing::Test::HasFatalFailure(); ++i) {
    chief.pass(from_seconds(0.1 * rng.uniform()));
    const std::uint64_t dice = rng.below(100);
    if (dice < 80 && !chief.busy().empty())
      chief.finish(any_of(chief.busy(), rng).first);
    else if (dice < 88 && !chief.busy().empty())
      chief.refuse(any_of(chief.busy(), rng).first);
    else if (dice < 94 && !chief.present().empty())
      chief.leave(any_of(chief.present(), rng));
    else if (chief.present().size() < 7)
      chief.join(1);
  }
  if (chief.present().empty()) chief.join(1);
  finish_everything(chief, rng);
  return chief;
}

TEST(OverlapLaw, StalenessIsAtMostOneUnderRandomEvents) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    StrategySpec always{"hps", {}, {}};
    always.knobs.overlap = 1;
    const SmallChief chief = whole_incarnation(make_strategy(always, {32, 0.9}).value(), seed);
    EXPECT_LE(chief.greatest_staleness(), 1U);
    EXPECT_EQ(chief.applied_samples(), 3000U);
  }
}

TEST(OverlapLaw, StalenessFollowsTheOverlapWhenItChanges) {
  for (const std::uint64_t most : {0U, 1U})
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      SCOPED_TRACE(testing::Message() << "overlap up to " << most << ", seed " << seed);
      Mechanisms m;
      m.batching = std::make_unique<EqualBatching>(32);
      m.gate = std::make_unique<GateAll>();
      m.rule = std::make_unique<RuleMean>(32);
      m.communication = std::make_unique<Fickle>(seed, most);
      const SmallChief chief = whole_incarnation(Strategy(std::move(m)), seed);
      EXPECT_LE(chief.greatest_staleness(), most);
      EXPECT_EQ(chief.applied_samples(), 3000U);
    }
}

}  // namespace
}  // namespace motley::policy
