#include "policy/interval/adaptive_interval.h"

#include <gtest/gtest.h>

namespace motley::policy {
namespace {

/// Rounds of a training, one by one.
struct Training {
  explicit Training(std::optional<std::uint32_t> steps = {}) : interval(steps) {}
  /// `psi` of the round, which is reported one round later.
  void round(double psi = 2, double progress = 0.5) {
    ++version;
    interval.updated({Version{version}, psi, loss, progress, progress, 1e-3, rate, step_s, transfer_s});
    interval.seen(Version{version}, 1);
    loss *= falling;
  }
  void rounds(int count) {
    for (int i = 0; i < count; ++i) round();
  }
  IntervalAdaptive interval;
  std::uint64_t version = 0;
  double loss = 0.5;
  double falling = 0.999;
  double rate = 0.02;
  double step_s = 0.1;
  double transfer_s = 0.05;
};

TEST(IntervalAdaptive, RoundsDoNotOverlapAtBeginningAndEnd) {
  Training training;
  EXPECT_TRUE(training.interval.is_sequential());
  EXPECT_EQ(training.interval.steps(), 1U);
  training.round(2, 0.001);
  EXPECT_EQ(training.interval.steps(), 4U) << "four times the steps so far";
  training.round(2, 0.005);
  EXPECT_TRUE(training.interval.is_sequential());
  EXPECT_EQ(training.interval.steps(), 12U);
  training.round(2, 0.01);
  EXPECT_FALSE(training.interval.is_sequential());
  EXPECT_EQ(training.interval.steps(), 12U);
  training.round(2, 0.995);
  EXPECT_TRUE(training.interval.is_sequential());
  EXPECT_EQ(training.interval.steps(), 5U) << "all that is left";
}

TEST(IntervalAdaptive, TheLastRoundsLeaveRoomForTheEnd) {
  Training training;
  training.round(2, 0.985);
  EXPECT_EQ(training.interval.steps(), 10U) << "of a thousandth each, until 99.5 %";
}

TEST(IntervalAdaptive, NothingIsJudgedInTheFirstPartOfTraining) {
  Training training;
  training.loss = 2.3;
  for (int i = 0; i < 20; ++i) training.round(2 + i, 0.049);
  EXPECT_EQ(training.interval.steps(), 12U) << "they part more each round";
}

TEST(IntervalAdaptive, RoundsAreLongEnoughToHideTransfers) {
  Training training;
  training.transfer_s = 1.95;
  training.rounds(3);
  EXPECT_EQ(training.interval.steps(), 20U);
  training.transfer_s = 100;
  training.round();
  EXPECT_EQ(training.interval.steps(), 32U) << "never more";
}

TEST(IntervalAdaptive, HalvesWhenModelsDisagreeAndGrowsAgain) {
  Training training;
  training.rounds(20);
  const std::uint32_t before = training.interval.steps();
  training.round(2 * 1.6);
  EXPECT_EQ(training.interval.steps(), (before + 1) / 2);
  training.rounds(100);
  EXPECT_GE(training.interval.steps(), before - 1);
}

TEST(IntervalAdaptive, AgreementIsComparedWithItsOwnMean) {
  Training training;
  for (int i = 0; i < 50; ++i) training.round(7.9);
  EXPECT_GE(training.interval.steps(), 11U) << "noise alone makes it large";
}

TEST(IntervalAdaptive, DoesNotGrowWhileTheLossRises) {
  Training training;
  training.rounds(20);
  training.round(3.3);
  const std::uint32_t halved = training.interval.steps();
  training.falling = 1.05;
  training.rounds(40);
  EXPECT_EQ(training.interval.steps(), halved);
}

TEST(IntervalAdaptive, IsShorterAsTheLossFlattensAndLongerAsTheRateDecays) {
  Training flat;
  flat.rounds(1);
  flat.loss = 0.5 / 16;
  flat.rounds(400);
  EXPECT_LE(flat.interval.steps(), 5U);
  Training slow;
  slow.rounds(1);
  slow.rate = 0.01;
  slow.falling = 1;
  slow.rounds(400);
  EXPECT_EQ(slow.interval.steps(), 24U);
}

TEST(IntervalAdaptive, AFixedNumberAppliesInTheMiddlePart) {
  Training training(40U);
  EXPECT_EQ(training.interval.steps(), 1U);
  training.transfer_s = 1;
  for (int i = 0; i < 50; ++i) training.round(i % 7 == 0 ? 9 : 2);
  EXPECT_EQ(training.interval.steps(), 40U);
}

TEST(IntervalAdaptive, ResumesFromACheckpoint) {
  Training training;
  training.rounds(20);
  training.round(3.3);
  SavedState state;
  StateWriter writer(state);
  training.interval.save(writer);
  Training later;
  StateReader reader(state);
  later.interval.restore(reader);
  EXPECT_EQ(later.interval.steps(), training.interval.steps());
  EXPECT_FALSE(later.interval.is_sequential());
  EXPECT_TRUE(reader.finish().ok());
}

}  // namespace
}  // namespace motley::policy
