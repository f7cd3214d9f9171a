// Shares of GPUs: the first by what each has measured of itself; sizes that are dear; times that say little; contributions that come late.
#include <gtest/gtest.h>

#include <vector>

#include "policy/batching/balanced_batching.h"

namespace motley::policy {
namespace {

/// GPUs that have measured themselves, with a batch multiple of 8.
std::vector<WorkerProfile> gpus(const std::vector<double>& samples_per_second) {
  std::vector<WorkerProfile> all;
  for (std::uint32_t w = 0; w < samples_per_second.size(); ++w) {
    const double per_sample = samples_per_second[w] > 0 ? 1 / samples_per_second[w] : 0;

    all.push_back({.worker = {w}, .device = {.cost = {0, per_sample}, .batch_multiple = 8}});
  }
  return all;
}

void observe(Monitor& monitor, std::uint32_t worker, std::uint32_t samples, double seconds, bool new_batch_size = false) {
  monitor.observe({.worker = {worker}, .report = {.samples = samples, .compute = from_seconds(seconds), .new_batch_size = new_batch_size}});
}

TEST(FirstShares, FollowTheCostsMeasuredByTheDevices) {
  BalancedBatching batching(1024, {});
  batching.joined(gpus({20000, 15000, 10000, 5000}));
  EXPECT_EQ(batching.batch({0}), 416U);
  EXPECT_EQ(batching.batch({3}), 96U);
  EXPECT_EQ(batching.batch({0}) + batching.batch({1}) + batching.batch({2}) + batching.batch({3}), 1024U);
}

TEST(FirstShares, AreEqualIfADeviceHasNotMeasuredItself) {
  BalancedBatching batching(1024, {});
  batching.joined(gpus({20000, 15000, 10000, 0}));
  EXPECT_EQ(batching.batch({0}), 256U);
  EXPECT_EQ(batching.batch({3}), 256U);
}

TEST(FirstShares, StayUntilOthersAreClearlySooner) {
  BalancedBatching batching(1024, {});
  batching.joined(gpus({10000, 10000}));
  Monitor monitor;
  monitor.joined({0});
  monitor.joined({1});
  const auto nothing = [](WorkerId) { return 0.0; };
  observe(monitor, 0, 512, 0.0500);
  observe(monitor, 1, 512, 0.0505);  // moving one batch multiple would gain less than a new size costs
  batching.updated(monitor, nothing);
  EXPECT_EQ(batching.batch({0}), 512U);
  for (int i = 0; i < 30; ++i) observe(monitor, 1, 512, 0.06);
  batching.updated(monitor, nothing);
  EXPECT_GT(batching.batch({0}), 530U);
}

TEST(FirstShares, AFirstStepOfASizeOnlyShowsThatADeviceIsFaster) {
  Monitor monitor;
  monitor.joined({0});
  observe(monitor, 0, 512, 10, /*new_batch_size=*/true);
  EXPECT_EQ(monitor.speed({0}).observations(), 0U);
  observe(monitor, 0, 512, 0.05);
  observe(monitor, 0, 520, 10, /*new_batch_size=*/true);
  EXPECT_NEAR(monitor.speed({0}).samples_per_second(), 10240, 1);
  observe(monitor, 0, 800, 0.04, /*new_batch_size=*/true);
  EXPECT_GT(monitor.speed({0}).samples_per_second(), 12000)
      << "else a device that never does a size twice would stay as slow as it once was";
}

TEST(FirstShares, IncludeTheFixedCostOfAStep) {
  BalancedBatching batching(1024, {});
  std::vector<WorkerProfile> profiles = gpus({34000, 26000, 17000, 8400});
  for (WorkerProfile& profile : profiles) profile.device.cost.fixed = 0.006;
  batching.joined(profiles);
  EXPECT_EQ(batching.batch({3}), 96U) << "112 without the overhead";
  EXPECT_EQ(batching.batch({0}) + batching.batch({1}) + batching.batch({2}) + batching.batch({3}), 1024U);
}

/// Two GPUs of which the second turns out slower than it thought. New sizes take 70 ms longer.
struct NewSizeCost : testing::Test {
  NewSizeCost() {
    batching.joined(gpus({10000, 10000}));
    for (const std::uint32_t w : {0U, 1U}) {
      monitor.joined({w});
      observe(monitor, w, 512, 0.12, true);
      observe(monitor, w, 512, 0.05);
    }
  }
  void slow_down(double second_s) {
    for (int i = 0; i < 60; ++i) observe(monitor, 1, 512, second_s);
  }
  /// Updates until the first has other than 512; 0: not within 200.
  int changes_after() {
    for (int i = 1; i <= 200; ++i) {
      batching.updated(monitor, [](WorkerId) { return 0.0; });
      if (batching.batch({0}) != 512) return i;
    }
    return 0;
  }
  BalancedBatching batching{1024, {}};
  Monitor monitor;
};

TEST_F(NewSizeCost, TheCostOfASizeIsTheExtraTimeOfItsFirstStep) {
  EXPECT_EQ(monitor.new_batch_size_s({0}, 512), 0) << "it has met that one";
  EXPECT_NEAR(monitor.new_batch_size_s({0}, 520), 0.07, 1e-6);
  observe(monitor, 0, 600, 600 * 0.05 / 512 + 0.09, true);
  EXPECT_NEAR(monitor.new_batch_size_s({0}, 520), 0.08, 1e-3);
  EXPECT_EQ(monitor.new_batch_size_s({0}, 600), 0);
}

TEST_F(NewSizeCost, APlanIsAdoptedAfterALossOfHalfItsCost) {
  slow_down(0.06);  // 60 ms instead of 54.5: after 7 updates it has cost half of 70
  EXPECT_NEAR(changes_after(), 7, 1);
}

TEST_F(NewSizeCost, AMuchBetterPlanIsAdoptedAtOnce) {
  slow_down(0.3);
  EXPECT_EQ(changes_after(), 1);
}

TEST_F(NewSizeCost, ASlightlyBetterPlanIsNeverAdopted) {
  slow_down(0.0505);
  EXPECT_EQ(changes_after(), 0);
}

TEST_F(NewSizeCost, ASmallGainCountsOnlyWithSteadySteps) {
  slow_down(0.0515);  // 1.5 % sooner
  for (int i = 0; i < 100; ++i) observe(monitor, 0, 512, i % 2 == 0 ? 0.048 : 0.052);
  EXPECT_EQ(changes_after(), 0);
  for (int i = 0; i < 100; ++i) observe(monitor, 0, 512, 0.05);
  EXPECT_GT(changes_after(), 0);
}

TEST_F(NewSizeCost, AUsedSizeIsNotNew) {
  observe(monitor, 0, 640, 0.0625);
  EXPECT_EQ(monitor.new_batch_size_s({0}, 640), 0);
}

TEST_F(NewSizeCost, TimesIndependentOfSizeMakeNoExtremePlan) {
  for (int i = 0; i < 20; ++i) {
    observe(monitor, 0, 480, 0.0490);  // by the fit 500 samples fewer gain next to nothing
    observe(monitor, 0, 512, 0.0491);
    observe(monitor, 1, 512, 0.0350);
  }
  for (int i = 0; i < 50; ++i) batching.updated(monitor, [](WorkerId) { return 0.0; });
  EXPECT_LT(batching.batch({0}), 512U);
  EXPECT_GT(batching.batch({0}), 300U);
}

/// Two GPUs that have measured what a step costs them, and take 1.5 % longer and less long for it than their plan says.
TEST(Overheads, MeasuredByTheDeviceDecideTheSharesOfSamples) {
  constexpr double overhead = 0.01;
  constexpr double per_sample = 2e-5;
  BalancedBatching batching(1024, {});
  std::vector<WorkerProfile> profiles = gpus({1 / per_sample, 1 / per_sample});
  Monitor monitor;
  for (WorkerProfile& profile : profiles) {
    profile.device.cost.fixed = overhead;
    monitor.joined(profile.worker, profile.device);
  }
  batching.joined(profiles);
  const auto step = [&](double beside, std::uint32_t samples) { return beside + overhead + per_sample * samples; };
  for (int i = 0; i < 200; ++i) {
    for (const std::uint32_t w : {0U, 1U}) observe(monitor, w, batching.batch({w}), step(w == 0 ? 0.0003 : -0.0003, batching.batch({w})));
    batching.updated(monitor, [](WorkerId) { return 0.0; });
  }
  EXPECT_EQ(batching.batch({0}), 496U) << "504 if all of a step were taken for samples";
}

/// So many rounds, each `apart` seconds after the last, in which the second contributes 10 ms later than its computing says; nobody knows
/// why.
void rounds(BalancedBatching& batching, Monitor& monitor, int count, double apart) {
  for (int round = 0; round < count; ++round) {
    std::vector<Contribution> members;
    for (const std::uint32_t w : {0U, 1U}) {
      const std::uint32_t samples = batching.batch({w});
      const Duration compute = from_seconds(1e-4 * samples);
      const Contribution made{.worker = {w},
                              .report = {.samples = samples, .compute = compute},
                              .arrived = at_seconds(1 + apart * round) + compute + from_seconds(w == 1 ? 0.01 : 0)};
      monitor.observe(made);
      members.push_back(made);
    }
    batching.applied(members);
    batching.updated(monitor, [](WorkerId) { return 0.0; });
  }
}

TEST_F(NewSizeCost, ASystematicDelayLowersTheBatch) {
  rounds(batching, monitor, 300, 0.08);
  EXPECT_EQ(batching.batch({0}) + batching.batch({1}), 1024U);
  EXPECT_NEAR(batching.batch({0}), 562, 12) << "both contribute at the same moment";
}

TEST_F(NewSizeCost, OverlappedStepsShowNoSystematicDelay) {
  rounds(batching, monitor, 300, 0.055);  // the first begins before the second has ended
  EXPECT_EQ(batching.batch({0}), 512U);
}

TEST_F(NewSizeCost, ADelayDecaysWhileStepsOverlap) {
  rounds(batching, monitor, 300, 0.08);
  ASSERT_GT(batching.batch({0}), 540U);
  rounds(batching, monitor, 300, 0.055);
  EXPECT_NEAR(batching.batch({0}), 512, 12);
}

TEST(FirstShares, ADeviceWithABatchMultipleGetsNoSpare) {
  BalancedBatching batching(1024, {.replan = 1, .time_limited = true});
  batching.joined(gpus({10000, 10000}));
  Monitor monitor;
  monitor.joined({0});
  monitor.joined({1});
  for (int i = 0; i < 50; ++i)
    for (const std::uint32_t w : {0U, 1U}) observe(monitor, w, 512, i % 2 == 0 ? 0.045 : 0.055);
  batching.updated(monitor, [](WorkerId) { return 0.0; });
  EXPECT_GT(monitor.speed({0}).jitter(), 0.05);
  EXPECT_EQ(batching.time_limit({0}).spare, 0U);
  EXPECT_GT(seconds(batching.time_limit({0}).limit), 0.055) << "only surprises meet it";
}

}  // namespace
}  // namespace motley::policy
