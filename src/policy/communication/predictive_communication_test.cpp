// Communication `predicted`: bits and overlap from measured links, times without overlap, and the user's settings.
#include "policy/communication/predictive_communication.h"

#include <gtest/gtest.h>

namespace motley::policy {
namespace {

/// Workers with these total transfer times, in seconds, of a contribution and the parameters in fp32. A step computes for 0.1 s.
struct Transferring {
  explicit Transferring(const PredictiveCommunication::Fixed& fixed = {}) : communication(fixed) {}

  void join(const std::vector<double>& round_trips) {
    for (std::uint32_t id = 0; id < round_trips.size(); ++id) communication.joined({id});
    links(round_trips);
  }
  /// From now on.
  void links(const std::vector<double>& round_trips) {
    monitor = Monitor();
    for (std::uint32_t id = 0; id < round_trips.size(); ++id) {
      monitor.joined({id}, {.bytes_per_value = bf16_transfer ? 2U : 4U});
      Contribution made = contribution(id);
      made.bits = {32, 32};
      made.push = made.report.pull = from_seconds(round_trips[id] / 2);
      monitor.observe(made);
    }
  }
  [[nodiscard]] Contribution contribution(std::uint32_t id) const {
    return {.worker = {id},
            .report = {.samples = 10, .loss_sum = 10 * loss, .squared_norm = norm * norm, .compute = from_seconds(0.1)},
            .bits = communication.bits({id})};
  }
  void update() {
    communication.contributed(contribution(0));
    communication.updated(monitor, {progress, step_s, ++updates, rate, free_transfers, idle_share});
  }
  void pass(int count) {
    for (int i = 0; i < count; ++i) update();
  }
  [[nodiscard]] Bits bits(std::uint32_t id = 0) const { return communication.bits({id}); }

  PredictiveCommunication communication;
  Monitor monitor;
  double progress = 0.5;
  double step_s = 0.1;
  double loss = 1;
  double norm = 1;
  double rate = 0.1;
  bool free_transfers = false;
  double idle_share = 0;
  bool bf16_transfer = false;  // every device computes in bf16: two bytes per uncoded value
  std::uint64_t updates = 0;
};

constexpr double cheap = 0.001;
constexpr double heavy = 0.2;    // 8/8 bits hide under a step
constexpr double heavier = 0.6;  // nothing does
constexpr Bits most{32, 32};
constexpr Bits sixteen{16, 16};
constexpr Bits eight{8, 8};
constexpr Bits fewest{4, 8};

TEST(PredictiveCommunication, FastLinksAreNotWorthAnOverlap) {
  Transferring world;
  world.join({cheap, cheap});
  world.pass(100);
  EXPECT_EQ(world.communication.overlap(), 0U);
}

TEST(PredictiveCommunication, SlowLinksOverlapWithAsManyBitsAsFit) {
  Transferring world;
  world.join({heavy, cheap});
  world.pass(100);
  EXPECT_EQ(world.communication.overlap(), 1U);
  EXPECT_EQ(world.bits(0), eight);
  EXPECT_EQ(world.bits(1), most) << "each by its own link";
  world.links({heavier, cheap});
  world.pass(20);
  EXPECT_EQ(world.communication.overlap(), 1U);
  EXPECT_EQ(world.bits(0), fewest);
}

TEST(PredictiveCommunication, Bf16DevicesGainNothingFromBf16Coding) {
  for (const bool bf16_transfer : {false, true}) {
    Transferring world;
    world.bf16_transfer = bf16_transfer;
    world.join({0.12});
    world.pass(100);
    EXPECT_EQ(world.communication.overlap(), 1U);
    EXPECT_EQ(world.bits(), bf16_transfer ? eight : sixteen);
    world.links({0.06});
    world.pass(20);
    EXPECT_EQ(world.bits(), most) << "in full they hide too";
  }
}

TEST(PredictiveCommunication, TheUsersOverlapAppliesToFreeTransfersToo) {
  Transferring world({.overlap = 1, .overlap_free_transfers = false});
  world.free_transfers = true;
  world.join({cheap});
  world.pass(30);
  EXPECT_EQ(world.communication.overlap(), 1U);
}

TEST(PredictiveCommunication, IdleDevicesOverlapFreeTransfersIfTheSettingIsOn) {
  for (const bool free_transfers : {false, true})
    for (const double idle_share : {0.0, 0.05})
      for (const bool overlap_free_transfers : {false, true}) {
        Transferring world({.overlap_free_transfers = overlap_free_transfers});
        world.free_transfers = free_transfers;
        world.idle_share = idle_share;
        world.join({cheap});
        world.pass(100);
        EXPECT_EQ(world.communication.overlap(), free_transfers && idle_share > 0 && overlap_free_transfers ? 1U : 0U)
            << free_transfers << idle_share << overlap_free_transfers;
      }
}

TEST(PredictiveCommunication, FreeTransfersNeedNoMeasurement) {
  Transferring world;
  world.free_transfers = true;
  world.idle_share = 0.05;
  world.communication.joined({0});
  world.monitor.joined({0});
  world.pass(100);
  EXPECT_EQ(world.communication.overlap(), 1U);
}

TEST(PredictiveCommunication, FreeTransfersArePredictedWithAllBits) {
  Transferring world;
  world.free_transfers = true;
  world.join({0.15 * world.step_s});  // a fourth of it would be too little to hide
  world.pass(100);
  EXPECT_EQ(world.communication.overlap(), 1U);
  EXPECT_EQ(world.bits(), most);
}

TEST(PredictiveCommunication, WithoutOverlapAFastLinkUsesBitsThatDelayNoWorker) {
  Transferring world({std::nullopt, 0});
  world.join({heavy / 20, heavy});
  world.pass(30);
  EXPECT_EQ(world.communication.overlap(), 0U);
  EXPECT_EQ(world.bits(0), most);
  EXPECT_EQ(world.bits(1), fewest);
}

TEST(PredictiveCommunication, NothingIsDecidedBeforeAllTransfersAreMeasured) {
  Transferring world;
  world.join({heavy, heavy});
  world.communication.joined({2});
  world.monitor.joined({2});
  world.pass(100);
  EXPECT_EQ(world.communication.overlap(), 0U);
  EXPECT_EQ(world.bits(0), most);
  world.communication.left({2});
  world.pass(1);
  EXPECT_EQ(world.communication.overlap(), 1U);
}

TEST(PredictiveCommunication, NothingIsDecidedWithoutAPlan) {
  Transferring world;
  world.join({heavy});
  world.step_s = 0;
  world.pass(100);
  EXPECT_EQ(world.communication.overlap(), 0U);
  EXPECT_EQ(world.bits(), most);
}

TEST(PredictiveCommunication, AChangeMustBeClearlyBetter) {
  // With 32 bits and c < 0.1 s, overlap promises .92 * (1 + c / 0.1) times as much: as much at 0.0087 s, 3 % more at 0.012, 3 % less at
  // 0.0055.
  Transferring world({most, std::nullopt});
  world.join({0.010});
  world.pass(50);
  EXPECT_EQ(world.communication.overlap(), 0U) << "better, but not by 3 %";
  world.links({0.013});
  world.pass(10);
  EXPECT_EQ(world.communication.overlap(), 1U);
  world.links({0.007});
  world.pass(50);
  EXPECT_EQ(world.communication.overlap(), 1U) << "worse, but not by 3 %";
  world.links({0.005});
  world.pass(10);
  EXPECT_EQ(world.communication.overlap(), 0U);
}

TEST(PredictiveCommunication, DoesNotOverlapInTheFirstAndTheLastPartOfTraining) {
  Transferring early;
  early.join({heavy});
  early.pass(19);
  EXPECT_EQ(early.communication.overlap(), 0U) << "the first 20 updates";
  early.pass(11);
  EXPECT_EQ(early.communication.overlap(), 1U);

  Transferring slow;
  slow.join({heavy});
  slow.progress = 0.009;
  slow.pass(500);
  EXPECT_EQ(slow.communication.overlap(), 0U) << "the first hundredth";
  slow.progress = 0.011;
  slow.pass(10);
  EXPECT_EQ(slow.communication.overlap(), 1U);
  slow.progress = 0.969;
  slow.pass(10);
  EXPECT_EQ(slow.communication.overlap(), 1U);
  slow.progress = 0.97;
  slow.pass(1);
  EXPECT_EQ(slow.communication.overlap(), 0U) << "the last 3 %, at once";
}

TEST(PredictiveCommunication, OverlapEndsEvenIfAWorkerIsNotMeasured) {
  Transferring world;
  world.join({heavy});
  world.pass(40);
  ASSERT_EQ(world.communication.overlap(), 1U);
  world.communication.joined({1});
  world.monitor.joined({1});
  world.step_s = 0;
  world.pass(10);
  EXPECT_EQ(world.communication.overlap(), 1U) << "a new worker alone is no reason";
  world.progress = 0.98;
  world.pass(1);
  EXPECT_EQ(world.communication.overlap(), 0U);
}

TEST(PredictiveCommunication, ALargeResidualRaisesTheBitsForAHundredUpdates) {
  Transferring world;
  world.join({heavier, heavier});
  world.pass(40);
  ASSERT_EQ(world.bits(0), fewest);
  Contribution behind = world.contribution(0);
  behind.report.residual = 0.5;
  world.communication.contributed(behind);
  EXPECT_EQ(world.bits(0), fewest) << "half is not more than half";
  behind.report.residual = 0.51;
  world.communication.contributed(behind);
  EXPECT_EQ(world.bits(0), eight) << "at once";
  world.communication.contributed(behind);
  EXPECT_EQ(world.bits(0), eight) << "one that left with the old bits says nothing of the new ones";
  world.pass(99);
  EXPECT_EQ(world.bits(0), eight);
  EXPECT_EQ(world.bits(1), fewest) << "the others are not moved";
  world.pass(11);
  EXPECT_EQ(world.bits(0), fewest) << "then it is tried again";
}

TEST(PredictiveCommunication, ALargeResidualDoesNotChooseBitsThatSaveNothing) {
  Transferring world;
  world.bf16_transfer = true;
  world.join({0.12});
  world.pass(100);
  ASSERT_EQ(world.bits(), eight);
  Contribution behind = world.contribution(0);
  behind.report.residual = 0.51;
  world.communication.contributed(behind);
  world.pass(20);
  EXPECT_EQ(world.bits(), most) << "16 would take as long";
}

TEST(PredictiveCommunication, ADivergenceEndsTheOverlapForAHundredUpdates) {
  struct Case {
    double loss;
    double norm;
  };
  for (const auto& [loss, norm] : {Case{1.3, 1}, Case{1, 4}}) {
    Transferring world;
    world.join({heavy});
    world.pass(400);
    ASSERT_EQ(world.communication.overlap(), 1U);
    world.loss = loss;
    world.norm = norm;
    while (world.communication.overlap() == 1 && world.updates < 500) world.update();
    ASSERT_LT(world.updates, 500U) << "loss " << loss << ", norm " << norm;
    world.loss = world.norm = 1;
    for (int i = 0; i < 99; ++i) {
      world.update();
      ASSERT_EQ(world.communication.overlap(), 0U) << "update " << i << " after a divergence";
    }
    world.pass(11);
    EXPECT_EQ(world.communication.overlap(), 1U);
  }
}

/// Overlapped, until a divergence ends that.
void disturb(Transferring& world) {
  ASSERT_EQ(world.communication.overlap(), 1U);
  world.loss *= 2;
  for (int i = 0; i < 100 && world.communication.overlap() == 1; ++i) world.update();
  ASSERT_EQ(world.communication.overlap(), 0U);
}

TEST(PredictiveCommunication, AfterADivergenceOverlapIsRetriedAtAQuarterOfTheRate) {
  Transferring world;
  world.join({heavy});
  world.pass(400);
  disturb(world);
  for (int i = 0; i < 300; ++i) {
    world.rate *= 0.9955;
    world.update();
    ASSERT_EQ(world.communication.overlap(), 0U) << "rate " << world.rate;
  }
  ASSERT_GT(world.rate, 0.025);
  for (int i = 0; i < 20; ++i) {
    world.rate *= 0.99;
    world.update();
  }
  EXPECT_EQ(world.communication.overlap(), 1U) << "rate " << world.rate;
}

TEST(PredictiveCommunication, AtAConstantRateTheRetryDelayDoubles) {
  Transferring world;
  world.join({heavy});
  world.pass(400);
  for (const int rest : {100, 200, 400}) {
    disturb(world);
    int idled = 0;
    for (; world.communication.overlap() == 0 && idled < 1000; ++idled) world.update();
    EXPECT_NEAR(idled, rest, 11);
    world.pass(100);
  }
}

TEST(PredictiveCommunication, TheUsersSettingsAreObeyed) {
  for (const double link : {cheap, heavy, heavier}) {
    Transferring bits({Bits{2, 16}, std::nullopt});
    Transferring sequential({std::nullopt, 0});
    Transferring overlapped({std::nullopt, 1});
    EXPECT_EQ(overlapped.communication.overlap(), 1U) << "from the start";
    for (Transferring* world : {&bits, &sequential, &overlapped}) world->join({link});
    for (int i = 0; i < 100; ++i) {
      for (Transferring* world : {&bits, &sequential, &overlapped}) {
        world->progress = i * 0.01;
        world->loss = 1 + i;  // divergence
        world->update();
      }
      ASSERT_EQ(bits.bits(), (Bits{2, 16}));
      ASSERT_EQ(sequential.communication.overlap(), 0U);
      ASSERT_EQ(overlapped.communication.overlap(), 1U);
    }
  }
}

TEST(PredictiveCommunication, ACheckpointKeepsTheDelayAfterADivergence) {
  Transferring before;
  before.join({heavy});
  before.pass(400);
  before.loss = 1.3;
  while (before.communication.overlap() == 1 && before.updates < 500) before.update();
  ASSERT_LT(before.updates, 500U);

  SavedState state;
  StateWriter writer(state);
  before.communication.save(writer);
  Transferring after;
  StateReader reader(state);
  after.communication.restore(reader);
  EXPECT_TRUE(reader.finish().ok());
  after.join({heavy});
  after.updates = before.updates;
  after.loss = 1.3;
  after.pass(99);
  EXPECT_EQ(after.communication.overlap(), 0U);
  after.pass(11);
  EXPECT_EQ(after.communication.overlap(), 1U);
}

TEST(PredictiveCommunication, AnEmptyCheckpointIsRefused) {
  Transferring world;
  const SavedState empty;
  StateReader reader(empty);
  world.communication.restore(reader);
  EXPECT_FALSE(reader.finish().ok());
}

}  // namespace
}  // namespace motley::policy
