// Travel `predicted`: which bits and which overlap follow from measured links, when overlap is not for now, and what a user has decided.
#include "policy/travel_predicted.h"

#include <gtest/gtest.h>

namespace motley::policy {
namespace {

/// Workers whose contribution and parameters of 32 bits travel for so many seconds together, half of it each way. A step computes for 0.1
/// s.
struct Travelling {
  explicit Travelling(const TravelPredicted::Fixed& fixed = {}) : travel(fixed) {}

  void join(const std::vector<double>& round_trips) {
    for (std::uint32_t id = 0; id < round_trips.size(); ++id) travel.joined({id});
    links(round_trips);
  }
  /// From now on.
  void links(const std::vector<double>& round_trips) {
    monitor = Monitor();
    for (std::uint32_t id = 0; id < round_trips.size(); ++id) {
      monitor.joined({id}, {}, halves);
      Contribution made = contribution(id);
      made.bits = {32, 32};
      made.push = made.pull = from_seconds(round_trips[id] / 2);
      monitor.observe(made);
    }
  }
  [[nodiscard]] Contribution contribution(std::uint32_t id) const {
    Contribution made{};
    made.worker = {id};
    made.samples = 10;
    made.local_steps = 1;
    made.compute = from_seconds(0.1);
    made.loss = loss;
    made.norm = norm;
    made.bits = travel.bits({id});
    return made;
  }
  void update() {
    travel.contributed(contribution(0));
    travel.updated(monitor, {progress, step_s, ++updates, rate, near, at_once});
  }
  void pass(int count) {
    for (int i = 0; i < count; ++i) update();
  }
  [[nodiscard]] Bits bits(std::uint32_t id = 0) const { return travel.bits({id}); }

  TravelPredicted travel;
  Monitor monitor;
  double progress = 0.5;
  double step_s = 0.1;
  double loss = 1;
  double norm = 1;
  double rate = 0.1;
  bool near = false;
  bool at_once = false;
  bool halves = false;  // everyone computes with 16 bits, and no more travel
  std::uint64_t updates = 0;
};

constexpr double cheap = 0.001;
constexpr double heavy = 0.2;    // 8/8 bits hide under a step
constexpr double heavier = 0.6;  // nothing does
constexpr Bits most{32, 32};
constexpr Bits sixteen{16, 16};
constexpr Bits eight{8, 8};
constexpr Bits fewest{4, 8};

TEST(TravelPredicted, CheapLinksAreNotWorthAnOverlap) {
  Travelling world;
  world.join({cheap, cheap});
  world.pass(100);
  EXPECT_EQ(world.travel.delay(), 0U);
}

TEST(TravelPredicted, HeavyLinksTravelUnderComputingInAsManyBitsAsFit) {
  Travelling world;
  world.join({heavy, cheap});
  world.pass(100);
  EXPECT_EQ(world.travel.delay(), 1U);
  EXPECT_EQ(world.bits(0), eight);
  EXPECT_EQ(world.bits(1), most) << "each by its own link";
  world.links({heavier, cheap});
  world.pass(20);
  EXPECT_EQ(world.travel.delay(), 1U);
  EXPECT_EQ(world.bits(0), fewest);
}

TEST(TravelPredicted, SixteenBitsSpareNothingToWhomNoMoreTravelAnyway) {
  for (const bool halves : {false, true}) {
    Travelling world;
    world.halves = halves;
    world.join({0.12});
    world.pass(100);
    EXPECT_EQ(world.travel.delay(), 1U);
    EXPECT_EQ(world.bits(), halves ? eight : sixteen);
    world.links({0.06});
    world.pass(20);
    EXPECT_EQ(world.bits(), most) << "in full they hide too";
  }
}

TEST(TravelPredicted, WhoeverWantsItOverlapsEvenWhereEverythingIsNear) {
  Travelling world({std::nullopt, 1, /*warms_up=*/true});
  world.near = true;
  world.join({cheap});
  world.pass(30);
  EXPECT_EQ(world.travel.delay(), 1U);
}

TEST(TravelPredicted, NearDevicesThatStandStillBetweenStepsOverlapUnlessTheRateHadToRise) {
  for (const bool near : {false, true})
    for (const bool at_once : {false, true})
      for (const bool warms_up : {false, true}) {
        Travelling world({std::nullopt, std::nullopt, warms_up});
        world.near = near;
        world.at_once = at_once;
        world.join({cheap});
        world.pass(100);
        EXPECT_EQ(world.travel.delay(), near && at_once && !warms_up ? 1U : 0U) << near << at_once << warms_up;
      }
}

TEST(TravelPredicted, NearDevicesNeedNotHaveTravelled) {
  Travelling world;
  world.near = world.at_once = true;
  world.travel.joined({0});
  world.monitor.joined({0});
  world.pass(100);
  EXPECT_EQ(world.travel.delay(), 1U);
}

TEST(TravelPredicted, WhatIsReadWhereItLiesIsPredictedInAllItsBits) {
  Travelling world({std::nullopt, std::nullopt});
  world.near = true;
  world.join({0.15 * world.step_s});  // a fourth of it would be too little to hide
  world.pass(100);
  EXPECT_EQ(world.travel.delay(), 1U);
  EXPECT_EQ(world.bits(), most);
}

TEST(TravelPredicted, WithoutOverlapAGoodLinkTakesTheBitsThatNobodyWaitsFor) {
  Travelling world({std::nullopt, 0});
  world.join({heavy / 20, heavy});
  world.pass(30);
  EXPECT_EQ(world.travel.delay(), 0U);
  EXPECT_EQ(world.bits(0), most);
  EXPECT_EQ(world.bits(1), fewest);
}

TEST(TravelPredicted, NothingIsDecidedBeforeEveryoneHasTravelled) {
  Travelling world;
  world.join({heavy, heavy});
  world.travel.joined({2});
  world.monitor.joined({2});
  world.pass(100);
  EXPECT_EQ(world.travel.delay(), 0U);
  EXPECT_EQ(world.bits(0), most);
  world.travel.left({2});
  world.pass(1);
  EXPECT_EQ(world.travel.delay(), 1U);
}

TEST(TravelPredicted, NothingIsDecidedWithoutAPlan) {
  Travelling world;
  world.join({heavy});
  world.step_s = 0;
  world.pass(100);
  EXPECT_EQ(world.travel.delay(), 0U);
  EXPECT_EQ(world.bits(), most);
}

TEST(TravelPredicted, AChangeMustBeClearlyBetter) {
  // With 32 bits and c < 0.1 s, overlap promises .92 * (1 + c / 0.1) times as much: as much at 0.0087 s, 3 % more at 0.012, 3 % less at
  // 0.0055.
  Travelling world({most, std::nullopt});
  world.join({0.010});
  world.pass(50);
  EXPECT_EQ(world.travel.delay(), 0U) << "better, but not by 3 %";
  world.links({0.013});
  world.pass(10);
  EXPECT_EQ(world.travel.delay(), 1U);
  world.links({0.007});
  world.pass(50);
  EXPECT_EQ(world.travel.delay(), 1U) << "worse, but not by 3 %";
  world.links({0.005});
  world.pass(10);
  EXPECT_EQ(world.travel.delay(), 0U);
}

TEST(TravelPredicted, DoesNotOverlapInTheFirstAndTheLastPartOfTraining) {
  Travelling early;
  early.join({heavy});
  early.pass(19);
  EXPECT_EQ(early.travel.delay(), 0U) << "the first 20 updates";
  early.pass(11);
  EXPECT_EQ(early.travel.delay(), 1U);

  Travelling slow;
  slow.join({heavy});
  slow.progress = 0.009;
  slow.pass(500);
  EXPECT_EQ(slow.travel.delay(), 0U) << "the first hundredth";
  slow.progress = 0.011;
  slow.pass(10);
  EXPECT_EQ(slow.travel.delay(), 1U);
  slow.progress = 0.969;
  slow.pass(10);
  EXPECT_EQ(slow.travel.delay(), 1U);
  slow.progress = 0.97;
  slow.pass(1);
  EXPECT_EQ(slow.travel.delay(), 0U) << "the last 3 %, at once";
}

TEST(TravelPredicted, OverlapEndsWhenItMustThoughSomebodyIsNotMeasured) {
  Travelling world;
  world.join({heavy});
  world.pass(40);
  ASSERT_EQ(world.travel.delay(), 1U);
  world.travel.joined({1});
  world.monitor.joined({1});
  world.step_s = 0;
  world.pass(10);
  EXPECT_EQ(world.travel.delay(), 1U) << "a newcomer alone is no reason";
  world.progress = 0.98;
  world.pass(1);
  EXPECT_EQ(world.travel.delay(), 0U);
}

TEST(TravelPredicted, ALargeResidualRaisesTheBitsForAHundredUpdates) {
  Travelling world;
  world.join({heavier, heavier});
  world.pass(40);
  ASSERT_EQ(world.bits(0), fewest);
  Contribution behind = world.contribution(0);
  behind.residual = 0.5;
  world.travel.contributed(behind);
  EXPECT_EQ(world.bits(0), fewest) << "half is not more than half";
  behind.residual = 0.51;
  world.travel.contributed(behind);
  EXPECT_EQ(world.bits(0), eight) << "at once";
  world.travel.contributed(behind);
  EXPECT_EQ(world.bits(0), eight) << "one that left with the old bits says nothing of the new ones";
  world.pass(99);
  EXPECT_EQ(world.bits(0), eight);
  EXPECT_EQ(world.bits(1), fewest) << "the others are not moved";
  world.pass(11);
  EXPECT_EQ(world.bits(0), fewest) << "then it is tried again";
}

TEST(TravelPredicted, ALargeResidualIsNoReasonToRoundForNothing) {
  Travelling world;
  world.halves = true;
  world.join({0.12});
  world.pass(100);
  ASSERT_EQ(world.bits(), eight);
  Contribution behind = world.contribution(0);
  behind.residual = 0.51;
  world.travel.contributed(behind);
  world.pass(20);
  EXPECT_EQ(world.bits(), most) << "16 would take as long";
}

TEST(TravelPredicted, UnrestEndsTheOverlapForAHundredUpdates) {
  struct Case {
    double loss;
    double norm;
  };
  for (const auto& [loss, norm] : {Case{1.3, 1}, Case{1, 4}}) {
    Travelling world;
    world.join({heavy});
    world.pass(400);
    ASSERT_EQ(world.travel.delay(), 1U);
    world.loss = loss;
    world.norm = norm;
    while (world.travel.delay() == 1 && world.updates < 500) world.update();
    ASSERT_LT(world.updates, 500U) << "loss " << loss << ", norm " << norm;
    world.loss = world.norm = 1;
    for (int i = 0; i < 99; ++i) {
      world.update();
      ASSERT_EQ(world.travel.delay(), 0U) << "update " << i << " after unrest";
    }
    world.pass(11);
    EXPECT_EQ(world.travel.delay(), 1U);
  }
}

/// Overlapped, until unrest ends that.
void disturb(Travelling& world) {
  ASSERT_EQ(world.travel.delay(), 1U);
  world.loss *= 2;
  for (int i = 0; i < 100 && world.travel.delay() == 1; ++i) world.update();
  ASSERT_EQ(world.travel.delay(), 0U);
}

TEST(TravelPredicted, WhatHasBroughtUnrestIsNotTriedAgainUntilTheRateIsAQuarter) {
  Travelling world;
  world.join({heavy});
  world.pass(400);
  disturb(world);
  for (int i = 0; i < 300; ++i) {
    world.rate *= 0.9955;
    world.update();
    ASSERT_EQ(world.travel.delay(), 0U) << "rate " << world.rate;
  }
  ASSERT_GT(world.rate, 0.025);
  for (int i = 0; i < 20; ++i) {
    world.rate *= 0.99;
    world.update();
  }
  EXPECT_EQ(world.travel.delay(), 1U) << "rate " << world.rate;
}

TEST(TravelPredicted, AtARateThatStaysEachRestIsTwiceTheLast) {
  Travelling world;
  world.join({heavy});
  world.pass(400);
  for (const int rest : {100, 200, 400}) {
    disturb(world);
    int rested = 0;
    for (; world.travel.delay() == 0 && rested < 1000; ++rested) world.update();
    EXPECT_NEAR(rested, rest, 11);
    world.pass(100);
  }
}

TEST(TravelPredicted, WhatTheUserHasDecidedIsObeyed) {
  for (const double link : {cheap, heavy, heavier}) {
    Travelling bits({Bits{2, 16}, std::nullopt});
    Travelling apart({std::nullopt, 0});
    Travelling overlapped({std::nullopt, 1});
    EXPECT_EQ(overlapped.travel.delay(), 1U) << "from the start";
    for (Travelling* world : {&bits, &apart, &overlapped}) world->join({link});
    for (int i = 0; i < 100; ++i) {
      for (Travelling* world : {&bits, &apart, &overlapped}) {
        world->progress = i * 0.01;
        world->loss = 1 + i;  // unrest
        world->update();
      }
      ASSERT_EQ(bits.bits(), (Bits{2, 16}));
      ASSERT_EQ(apart.travel.delay(), 0U);
      ASSERT_EQ(overlapped.travel.delay(), 1U);
    }
  }
}

TEST(TravelPredicted, ACheckpointKeepsTheRestAfterUnrest) {
  Travelling before;
  before.join({heavy});
  before.pass(400);
  before.loss = 1.3;
  while (before.travel.delay() == 1 && before.updates < 500) before.update();
  ASSERT_LT(before.updates, 500U);

  std::vector<double> state;
  before.travel.save(state);
  state.push_back(7);
  Travelling after;
  SavedState rest(state);
  after.travel.restore(rest);
  EXPECT_EQ(rest.number(), 7) << "what belongs to others is left to them";
  EXPECT_TRUE(rest.all_read());
  after.join({heavy});
  after.updates = before.updates;
  after.loss = 1.3;
  after.pass(99);
  EXPECT_EQ(after.travel.delay(), 0U);
  after.pass(11);
  EXPECT_EQ(after.travel.delay(), 1U);
}

TEST(TravelPredicted, AnEmptyCheckpointIsRefused) {
  Travelling world;
  SavedState none{{}};
  world.travel.restore(none);
  EXPECT_FALSE(none.all_read());
}

}  // namespace
}  // namespace motley::policy
