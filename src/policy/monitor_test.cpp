// The affine fit of compute time: what it finds, what it cannot know, and how soon it forgets.
#include "policy/monitor.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "base/rng.h"

namespace motley::policy {
namespace {

void observe(SpeedFit& fit, std::uint32_t samples, const cluster::Affine& device) {
  fit.observe(samples, from_seconds(device.at(samples)));
}

TEST(SpeedFit, FindsOverheadAndSpeedFromUnlikeBatches) {
  const cluster::Affine device{0.02, 0.004};
  SpeedFit fit;
  Rng rng(1, "speed fit");
  for (int i = 0; i < 20; ++i) observe(fit, 8 + static_cast<std::uint32_t>(rng.below(100)), device);
  EXPECT_NEAR(fit.fit().fixed, device.fixed, 1e-7);
  EXPECT_NEAR(fit.fit().per_sample, device.per_sample, 1e-9);
}

TEST(SpeedFit, TwoUnlikeBatchesAreEnough) {
  const cluster::Affine device{0.01, 0.001};
  SpeedFit fit;
  observe(fit, 10, device);
  EXPECT_EQ(fit.fit().fixed, 0) << "one batch cannot tell";
  EXPECT_NEAR(fit.fit().at(10), device.at(10), 1e-9);
  observe(fit, 50, device);
  EXPECT_NEAR(fit.fit().fixed, device.fixed, 1e-7);
}

TEST(SpeedFit, LikeBatchesKeepTheKnownOverheadAndMoveTheSpeed) {
  SpeedFit fit;
  for (const std::uint32_t batch : {10U, 50U, 30U}) observe(fit, batch, {0.01, 0.001});
  for (int i = 0; i < 80; ++i) observe(fit, 40, {0.01, 0.002});
  EXPECT_NEAR(fit.fit().at(40), 0.09, 1e-4) << "where it works it is right";
  EXPECT_GE(fit.fit().fixed, 0);
  EXPECT_GT(fit.fit().per_sample, 0);
}

TEST(SpeedFit, NoiseOnLikeBatchesIsNotReadAsOverhead) {
  SpeedFit fit;
  Rng rng(2, "speed fit");
  for (int i = 0; i < 200; ++i) {
    fit.observe(32 + static_cast<std::uint32_t>(rng.below(2)), from_seconds(0.032 * rng.log_normal(0.2)));
    EXPECT_EQ(fit.fit().fixed, 0);
  }
}

TEST(SpeedFit, FollowsAFourfoldSlowdownWithinTwentySteps) {
  SpeedFit fit;
  for (int i = 0; i < 50; ++i) observe(fit, i % 2 == 0 ? 40 : 50, {0.002, 0.001});
  for (int i = 0; i < 20; ++i) observe(fit, i % 2 == 0 ? 40 : 50, {0.008, 0.004});
  EXPECT_NEAR(fit.fit().at(45), 0.188, 0.12 * 0.188);
  for (int i = 0; i < 20; ++i) observe(fit, i % 2 == 0 ? 40 : 50, {0.002, 0.001});
  EXPECT_LT(fit.fit().at(45), 0.188 / 2) << "and back";
}

TEST(SpeedFit, BelievesAFourfoldSlowdownAtOnceAndKeepsTheProportions) {
  SpeedFit fit;
  for (const std::uint32_t batch : {10U, 50U, 30U, 47U}) observe(fit, batch, {0.002, 0.001});
  observe(fit, 47, {0.008, 0.004});
  EXPECT_NEAR(fit.fit().fixed, 0.008, 1e-6);
  EXPECT_NEAR(fit.fit().per_sample, 0.004, 1e-7);
  observe(fit, 15, {0.008, 0.004});
  observe(fit, 14, {0.002, 0.001});
  EXPECT_NEAR(fit.fit().at(40), 0.042, 1e-6) << "and back";
}

TEST(SpeedFit, StaysSoundWhateverItIsTold) {
  SpeedFit fit;
  Rng rng(3, "speed fit");
  for (int i = 0; i < 2000; ++i) {
    fit.observe(1 + static_cast<std::uint32_t>(rng.below(200)),
                Duration{static_cast<std::int64_t>(rng.below(3) == 0 ? 0 : rng.below(1'000'000'000))});
    EXPECT_GE(fit.fit().fixed, 0);
    EXPECT_GT(fit.fit().per_sample, 0);
  }
}

TEST(Monitor, KeepsWorkersApart) {
  Monitor monitor;
  monitor.joined({0});
  monitor.joined({2});
  Contribution told{};
  told.worker = {2};
  told.samples = 10;
  told.local_steps = 1;
  told.compute = from_seconds(1);
  monitor.observe(told);
  EXPECT_EQ(monitor.speed({0}).observations(), 0U);
  EXPECT_EQ(monitor.speed({2}).observations(), 1U);
  EXPECT_NEAR(monitor.speed({2}).fit().at(10), 1, 1e-9);
  EXPECT_THROW((void)monitor.speed({3}), Bug);
}

}  // namespace
}  // namespace motley::policy
