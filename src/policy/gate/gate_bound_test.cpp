// Gate `bound`: SSP with a fixed bound, DSSP with a moving one, and its promise held against clocks kept outside.
#include "policy/gate/gate_bound.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "policy/gate/gate_driver_for_tests.h"
#include "policy/small_chief_for_tests.h"

namespace motley::policy {
namespace {

GateDriver bound(std::uint32_t lower, std::uint32_t upper) { return GateDriver(std::make_unique<GateBound>(lower, upper)); }

TEST(Ssp, GoesOnWhileWithinTheBoundAndWaitsBeyondIt) {
  GateDriver gate = bound(1, 1);
  EXPECT_EQ(gate.join({0, 1}), "release 0 (first_order), 1 (first_order)");
  EXPECT_EQ(gate.finish(0), "apply 0; release 0 (within_bound)");
  EXPECT_EQ(gate.finish(0), "apply 0; hold 0 (ahead_of_slowest, 2)");
  EXPECT_EQ(gate.finish(1), "apply 1; release 0 (slowest_moved), 1 (within_bound)");
}

TEST(Ssp, BoundZeroIsLockstep) {
  GateDriver gate = bound(0, 0);
  gate.join({0, 1, 2});
  EXPECT_EQ(gate.finish(2), "apply 2; hold 2 (ahead_of_slowest, 1)");
  EXPECT_EQ(gate.finish(0), "apply 0; hold 0 (ahead_of_slowest, 1)");
  EXPECT_EQ(gate.finish(1), "apply 1; release 0 (slowest_moved), 2 (slowest_moved), 1 (within_bound)");
}

TEST(Ssp, OneAloneNeverWaits) {
  GateDriver gate = bound(0, 0);
  gate.join({0});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(gate.finish(0), "apply 0; release 0 (within_bound)");
}

TEST(Ssp, ANewWorkerBeginsAtTheSlowestClock) {
  GateDriver gate = bound(1, 1);
  gate.join({0, 1});
  for (int i = 0; i < 4; ++i) gate.finish(0), gate.finish(1);
  gate.finish(0);  // clocks 5 and 4
  EXPECT_EQ(gate.join({2}), "release 2 (first_order)");
  EXPECT_EQ(gate.finish(0), "apply 0; hold 0 (ahead_of_slowest, 2)") << "the new worker is no slower than the slowest";
  EXPECT_EQ(gate.finish(1), "apply 1; release 1 (within_bound)") << "the new worker is now the slowest";
  EXPECT_EQ(gate.finish(2), "apply 2; release 0 (slowest_moved), 2 (within_bound)");
}

TEST(Ssp, LosingTheSlowestReleasesWaitingWorkers) {
  GateDriver gate = bound(1, 1);
  gate.join({0, 1, 2});
  gate.finish(0), gate.finish(0);
  gate.finish(1);
  EXPECT_EQ(gate.leave(2), "release 0 (slowest_moved)");
  EXPECT_EQ(gate.leave(0), "");
}

TEST(Ssp, AWaitingWorkerMayBeLost) {
  GateDriver gate = bound(0, 0);
  gate.join({0, 1});
  gate.finish(0);
  EXPECT_EQ(gate.leave(0), "");
  EXPECT_EQ(gate.finish(1), "apply 1; release 1 (within_bound)");
}

TEST(Ssp, IdleWorkersDelayNoOther) {
  GateDriver gate = bound(0, 0);
  gate.join({0, 1});
  EXPECT_EQ(gate.finish(0), "apply 0; hold 0 (ahead_of_slowest, 1)");
  gate.work = false;
  // The slowest is done, so the first is let go; both find nothing.
  EXPECT_EQ(gate.finish(1), "apply 1; release 0 (slowest_moved), 1 (within_bound)");
  gate.work = true;
  EXPECT_EQ(gate.join({2}), "release 2 (first_order)");
  EXPECT_EQ(gate.finish(2), "apply 2; release 2 (within_bound)") << "the others rest";
  EXPECT_EQ(gate.leave(2), "release 0 (work_returned), 1 (work_returned)");
}

TEST(Ssp, AWorkerThatWasIdleIsNotBehindTheOthers) {
  GateDriver gate = bound(1, 1);
  gate.join({0, 1, 2});
  gate.work = false;
  gate.finish(0);  // rests at clock 1
  gate.work = true;
  for (int i = 0; i < 4; ++i) gate.finish(1), gate.finish(2);
  EXPECT_EQ(gate.leave(2), "release 0 (work_returned)");
  EXPECT_EQ(gate.finish(1), "apply 1; release 1 (within_bound)") << "0 counts from where 1 was, not from its own old clock";
}

TEST(Ssp, ARefusedWorkerTriesAgainAndItsClockStands) {
  GateDriver gate = bound(0, 0);
  gate.join({0, 1});
  gate.finish(0);
  EXPECT_EQ(gate.refuse(1), "release 1 (work_returned)");
  EXPECT_EQ(gate.finish(1), "apply 1; release 0 (slowest_moved), 1 (within_bound)");
}

TEST(Ssp, ARefusedWorkerWithoutWorkDelaysNoOther) {
  GateDriver gate = bound(0, 0);
  gate.join({0, 1});
  gate.finish(0);
  gate.work = false;
  EXPECT_EQ(gate.refuse(1), "release 1 (work_returned), 0 (slowest_moved)");
}

TEST(Ssp, CrossedBoundsAreABug) { EXPECT_THROW(GateBound(3, 2), Bug); }

TEST(Dssp, RunsAheadWhenTheSlowestIsNotDueSoon) {
  GateDriver gate = bound(1, 3);
  gate.join({0, 1});
  gate.finish_at(100, 1), gate.finish_at(200, 1);  // the slow one is due every 100 ms
  gate.finish_at(201, 0), gate.finish_at(202, 0);
  EXPECT_EQ(gate.finish_at(240, 0), "apply 0; release 0 (within_bound)");
  EXPECT_EQ(gate.finish_at(280, 0), "apply 0; hold 0 (ahead_of_slowest, 2)")
      << "at 280 it would wait for 20 ms, at 320 for 80, at 360 for 40";
  EXPECT_EQ(gate.finish_at(300, 1), "apply 1; release 0 (slowest_moved), 1 (within_bound)");
  EXPECT_EQ(gate.finish_at(330, 0), "apply 0; release 0 (extra_steps)") << "at 330 it would wait for 70 ms, at 380 for 20, at 430 for 70";
  EXPECT_EQ(gate.finish_at(380, 0), "apply 0; hold 0 (ahead_of_slowest, 3)") << "the one extra step is spent";
}

TEST(Dssp, NeverBeginsAStepMoreThanTheUpperBoundAhead) {
  GateDriver gate = bound(1, 3);
  gate.join({0, 1});
  gate.finish_at(1000, 1), gate.finish_at(2000, 1);
  gate.finish_at(2001, 0), gate.finish_at(2002, 0);  // both at 2; the fast one takes 1 ms, so more steps are always better
  EXPECT_EQ(gate.finish_at(2003, 0), "apply 0; release 0 (within_bound)");
  EXPECT_EQ(gate.finish_at(2004, 0), "apply 0; release 0 (extra_steps)");
  EXPECT_EQ(gate.finish_at(2005, 0), "apply 0; release 0 (extra_steps)");
  EXPECT_EQ(gate.finish_at(2006, 0), "apply 0; hold 0 (ahead_of_slowest, 4)");
}

TEST(Dssp, WaitsLikeSspWhileIntervalsAreUnknown) {
  GateDriver gate = bound(0, 9);
  gate.join({0, 1});
  EXPECT_EQ(gate.finish_at(10, 0), "apply 0; hold 0 (ahead_of_slowest, 1)");
}

/// A slow reference for the choice of extra steps: tries the slow worker's arrivals one by one.
std::uint32_t extra_steps_by_search(int fast_last, int fast_interval, int slow_last, int slow_interval, std::uint32_t most) {
  std::uint32_t best = 0;
  int shortest = std::numeric_limits<int>::max();
  for (std::uint32_t r = 0; r <= most; ++r) {
    const int ready = fast_last + static_cast<int>(r) * fast_interval;
    int arrival = slow_last + slow_interval;
    while (arrival < ready) arrival += slow_interval;
    if (arrival - ready < shortest) {
      shortest = arrival - ready;
      best = r;
    }
  }
  return best;
}

TEST(Dssp, GrantsTheStepsThatMakeTheWaitShortest) {
  Rng rng(1, "dssp");
  for (int trial = 0; trial < 500; ++trial) {
    const auto most = static_cast<std::uint32_t>(1 + rng.below(8));
    const int slow_interval = 1 + static_cast<int>(rng.below(400));
    const int fast_interval = 1 + static_cast<int>(rng.below(200));
    const int slow_last = 1000 + slow_interval;
    const int fast_last = slow_last + static_cast<int>(rng.below(1000));
    SCOPED_TRACE(testing::Message() << "trial " << trial << ": slow " << slow_last << "+" << slow_interval << ", fast " << fast_last << "+"
                                    << fast_interval << ", up to " << most);
    GateDriver gate = bound(1, 1 + most);
    gate.join({0, 1});
    gate.finish_at(1000, 1);
    gate.finish_at(slow_last, 1);  // clock 2
    for (int step = 3; step > 0; --step) gate.finish_at(fast_last - step * fast_interval, 0);

    const std::uint32_t granted = extra_steps_by_search(fast_last, fast_interval, slow_last, slow_interval, most);
    std::uint32_t taken = 0;
    std::string answer = gate.finish_at(fast_last, 0);  // clock 4: two ahead, one more than the lower bound
    while (answer == "apply 0; release 0 (extra_steps)") {
      ++taken;
      answer = gate.finish(0);
    }
    EXPECT_EQ(taken, granted);
    EXPECT_EQ(answer, fmt::format("apply 0; hold 0 (ahead_of_slowest, {})", 2 + granted));
  }
}

TEST(Bound, KeepsItsBoundUnderAnyTiming) {
  for (const auto& [strategy, lower, upper] : {std::tuple{"ssp", 2U, 2U}, std::tuple{"dssp", 1U, 4U}}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(testing::Message() << strategy << ", seed " << seed);
      Rng rng(seed, "bound");
      Knobs knobs;
      knobs.bound = lower;
      if (upper > lower) knobs.bound_max = upper;
      SmallChief chief(make_strategy({strategy, knobs, {}}, {32, 0.9}).value(), 1'000'000);
      constexpr std::uint64_t workers = 4;
      chief.join(workers);
      std::array<std::uint64_t, workers> clocks{};
      for (int i = 0; i < 2000; ++i) {
        // A random favourite for a while, so that gaps grow as far as they may.
        const WorkerId favourite{static_cast<std::uint32_t>((i / 30 + seed) % workers)};
        const WorkerId worker = chief.busy().contains(favourite) ? favourite : any_of(chief.busy(), rng).first;
        chief.pass(from_seconds(0.001 + 0.1 * rng.uniform()));
        ++clocks[worker.value];
        chief.finish(worker);
        const std::uint64_t slowest = *std::min_element(clocks.begin(), clocks.end());
        for (const auto& [busy, task] : chief.busy()) EXPECT_LE(clocks[busy.value], slowest + upper);
      }
      EXPECT_LE(chief.greatest_staleness(), (workers - 1) * (2 * upper + 2));
      EXPECT_GT(chief.greatest_staleness(), workers) << "the test lets them run apart";
    }
  }
}

}  // namespace
}  // namespace motley::policy
