// Gates `all` and `none`: the barrier, its absence, and what comings, goings and refusals do to them.
#include <gtest/gtest.h>

#include "policy/gate/gate_all.h"
#include "policy/gate/gate_driver_for_tests.h"
#include "policy/gate/gate_none.h"
#include "policy/small_chief_for_tests.h"
#include "policy/worker_set.h"

namespace motley::policy {
namespace {

struct All : testing::Test {
  GateDriver gate{std::make_unique<GateAll>()};
};

TEST_F(All, TheRoundEndsWhenTheLastWorkerHasContributed) {
  EXPECT_EQ(gate.join({0, 1, 2}), "release 0 (first_order), 1 (first_order), 2 (first_order)");
  EXPECT_EQ(gate.finish(1), "hold 1 (others_computing, 2)");
  EXPECT_EQ(gate.finish(2), "hold 2 (others_computing, 1)");
  EXPECT_EQ(gate.finish(0), "apply 0 1 2; release 0 (barrier_complete), 1 (barrier_complete), 2 (barrier_complete)");
}

TEST_F(All, AWorkerThatJoinsDuringARoundWaitsForTheNext) {
  gate.join({0, 1});
  gate.finish(0);
  EXPECT_EQ(gate.join({2}), "hold 2 (round_in_progress, 1)");
  EXPECT_EQ(gate.finish(1), "apply 0 1; release 0 (barrier_complete), 1 (barrier_complete), 2 (barrier_complete)");
}

TEST_F(All, LosingTheOnlyMissingWorkerEndsTheRound) {
  gate.join({0, 1, 2});
  gate.finish(0);
  gate.finish(2);
  EXPECT_EQ(gate.leave(1), "apply 0 2; release 0 (barrier_complete), 2 (barrier_complete)");
}

TEST_F(All, AContributionCountsAfterItsWorkerLeft) {
  gate.join({0, 1});
  gate.finish(0);
  EXPECT_EQ(gate.leave(0), "");
  EXPECT_EQ(gate.finish(1), "apply 0 1; release 1 (barrier_complete)");
}

TEST_F(All, ContributionsAreAppliedWhenNoWorkerIsLeft) {
  gate.join({0, 1});
  gate.finish(0);
  gate.leave(0);
  EXPECT_EQ(gate.leave(1), "apply 0");
  EXPECT_EQ(gate.join({2}), "release 2 (first_order)");
}

TEST_F(All, ARefusedContributionIsNotWaitedFor) {
  gate.join({0, 1});
  EXPECT_EQ(gate.refuse(0), "hold 0 (others_computing, 1)");
  EXPECT_EQ(gate.finish(1), "apply 1; release 0 (barrier_complete), 1 (barrier_complete)");
  gate.finish(0);
  EXPECT_EQ(gate.refuse(1), "apply 0; release 0 (barrier_complete), 1 (barrier_complete)");
}

TEST_F(All, ARoundInWhichAllAreRefusedIsTriedAgain) {
  gate.join({0, 1});
  gate.refuse(1);
  EXPECT_EQ(gate.refuse(0), "release 0 (work_returned), 1 (work_returned)");
}

TEST_F(All, NothingIsStaleUnderAnyTiming) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed, "barrier");
    SmallChief chief(make_strategy({"bsp", {}, {}}, {32, 0.9}).value(), 3000);
    chief.join(5);
    for (int i = 0; i < 200 && !chief.busy().empty(); ++i) {
      chief.finish(any_of(chief.busy(), rng).first);
      if (rng.below(20) == 0) chief.join(1);
      if (rng.below(20) == 0 && chief.present().size() > 1) chief.leave(any_of(chief.present(), rng));
    }
    EXPECT_EQ(chief.greatest_staleness(), 0U) << "seed " << seed;
  }
}

struct None : testing::Test {
  GateDriver gate{std::make_unique<GateNone>()};
};

TEST_F(None, ContributionsAreAppliedOnArrival) {
  EXPECT_EQ(gate.join({0, 1}), "release 0 (first_order), 1 (first_order)");
  EXPECT_EQ(gate.finish(1), "apply 1; release 1 (on_arrival)");
  EXPECT_EQ(gate.finish(1), "apply 1; release 1 (on_arrival)");
  EXPECT_EQ(gate.join({2}), "release 2 (first_order)");
  EXPECT_EQ(gate.refuse(0), "release 0 (work_returned)");
}

TEST_F(None, IdleWorkersAreReleasedWhenAWorkerLeaves) {
  gate.join({0, 1, 2});
  gate.work = false;
  gate.finish(0);
  gate.finish(2);
  gate.work = true;
  EXPECT_EQ(gate.leave(1), "release 0 (work_returned), 2 (work_returned)");
  EXPECT_EQ(gate.leave(0), "") << "nobody rests any more";
}

TEST(WorkerSet, CountsBusyWorkersAndRanksPresentOnes) {
  WorkerSet worker_set;
  for (const std::uint32_t id : {4U, 1U, 2U}) worker_set.join({id});
  EXPECT_EQ(worker_set.workers(), (std::vector<WorkerId>{{1}, {2}, {4}}));
  EXPECT_EQ(worker_set.rank({4}), 2U);
  worker_set.set_busy({2}, true);
  worker_set.set_busy({2}, true);
  worker_set.set_busy({4}, true);
  EXPECT_EQ(worker_set.busy_count(), 2U);
  EXPECT_TRUE(worker_set.leave({2}));
  EXPECT_FALSE(worker_set.leave({1}));
  EXPECT_EQ(worker_set.busy_count(), 1U);
  EXPECT_EQ(worker_set.rank({4}), 0U);
  EXPECT_FALSE(worker_set.present({7}));
}

TEST(WorkerSet, JoiningTwiceOrLeavingWhenAbsentIsABug) {
  WorkerSet worker_set;
  worker_set.join({0});
  EXPECT_THROW(worker_set.join({0}), Bug);
  EXPECT_THROW(worker_set.leave({1}), Bug);
  EXPECT_THROW(worker_set.set_busy({1}, true), Bug);
  EXPECT_THROW((void)worker_set.rank({1}), Bug);
}

}  // namespace
}  // namespace motley::policy
