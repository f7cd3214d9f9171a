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

TEST(SpeedFit, FindsOverheadAndSpeedFromDifferentBatches) {
  const cluster::Affine device{0.02, 0.004};
  SpeedFit fit;
  Rng rng(1, "speed fit");
  for (int i = 0; i < 20; ++i) observe(fit, 8 + static_cast<std::uint32_t>(rng.below(100)), device);
  EXPECT_NEAR(fit.fit().fixed, device.fixed, 1e-7);
  EXPECT_NEAR(fit.fit().per_sample, device.per_sample, 1e-9);
}

TEST(SpeedFit, TwoDifferentBatchesAreEnough) {
  const cluster::Affine device{0.01, 0.001};
  SpeedFit fit;
  observe(fit, 10, device);
  EXPECT_EQ(fit.fit().fixed, 0) << "one batch cannot tell";
  EXPECT_NEAR(fit.fit().at(10), device.at(10), 1e-9);
  observe(fit, 50, device);
  EXPECT_NEAR(fit.fit().fixed, device.fixed, 1e-7);
}

TEST(SpeedFit, SimilarBatchesKeepTheOverheadAndMoveTheSpeed) {
  SpeedFit fit;
  for (const std::uint32_t batch : {10U, 50U, 30U}) observe(fit, batch, {0.01, 0.001});
  for (int i = 0; i < 80; ++i) observe(fit, 40, {0.01, 0.002});
  EXPECT_NEAR(fit.fit().at(40), 0.09, 1e-4) << "where it works it is right";
  EXPECT_GE(fit.fit().fixed, 0);
  EXPECT_GT(fit.fit().per_sample, 0);
}

/// As one was seen: its batch changed once, and the steps before that had taken longer than they should.
TEST(SpeedFit, AnOutlierAtOneOfTwoSizesDoesNotOverrideThePrior) {
  const cluster::Affine device{0.0045, 0.00013};
  for (const bool prior : {false, true}) {
    SpeedFit fit = prior ? SpeedFit(device) : SpeedFit();
    for (int i = 0; i < 30; ++i) fit.observe(112, from_seconds(1.12 * device.at(112)));
    for (int i = 0; i < 30; ++i) observe(fit, 84, device);
    EXPECT_NEAR(fit.fit().at(84), device.at(84), 0.01 * device.at(84));
    if (prior)
      EXPECT_NEAR(fit.fit().fixed, device.fixed, 0.2 * device.fixed);
    else
      EXPECT_LT(fit.fit().fixed, 0.5 * device.fixed);
  }
}

TEST(SpeedFit, ManyDifferentBatchesOverrideThePrior) {
  const cluster::Affine device{0.02, 0.004};
  SpeedFit fit(cluster::Affine{0, 0.005});
  Rng rng(1, "speed fit");
  for (int i = 0; i < 60; ++i) observe(fit, 8 + static_cast<std::uint32_t>(rng.below(200)), device);
  EXPECT_GT(fit.fit().fixed, 0.6 * device.fixed) << "nearer to what is than to what was said";
}

TEST(SpeedFit, NoiseOnSimilarBatchesIsNotReadAsOverhead) {
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

TEST(SpeedFit, AcceptsAFourfoldSlowdownAtOnceAndKeepsProportions) {
  SpeedFit fit;
  for (const std::uint32_t batch : {10U, 50U, 30U, 47U}) observe(fit, batch, {0.002, 0.001});
  observe(fit, 47, {0.008, 0.004});
  EXPECT_NEAR(fit.fit().fixed, 0.008, 1e-6);
  EXPECT_NEAR(fit.fit().per_sample, 0.004, 1e-7);
  observe(fit, 15, {0.008, 0.004});
  observe(fit, 14, {0.002, 0.001});
  EXPECT_NEAR(fit.fit().at(40), 0.042, 1e-6) << "and back";
}

TEST(SpeedFit, StaysValidUnderAnyObservations) {
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
  monitor.observe({.worker = {2}, .report = {.samples = 10, .compute = from_seconds(1)}});
  EXPECT_EQ(monitor.speed({0}).observations(), 0U);
  EXPECT_EQ(monitor.speed({2}).observations(), 1U);
  EXPECT_NEAR(monitor.speed({2}).fit().at(10), 1, 1e-9);
  EXPECT_THROW((void)monitor.speed({3}), Bug);
}

// Steps whose time was given -------------------------------------------------------------------------------------------------------------

/// A fit that has told overhead and speed apart.
SpeedFit learned(const cluster::Affine& device) {
  SpeedFit fit;
  for (const std::uint32_t batch : {10U, 50U, 30U, 47U, 20U, 40U}) observe(fit, batch, device);
  return fit;
}

TEST(SpeedFit, ALimitedStepScalesOverheadAndSpeedAlike) {
  const cluster::Affine device{0.002, 0.001};
  SpeedFit fit = learned(device);
  for (int i = 0; i < 80; ++i) {
    fit.observe_limited(40, from_seconds(1.1 * device.at(40)));
    EXPECT_NEAR(fit.fit().fixed / fit.fit().per_sample, 2, 1e-3);
  }
  EXPECT_NEAR(fit.fit().fixed, 0.0022, 1e-5);
  EXPECT_NEAR(fit.fit().per_sample, 0.0011, 1e-6);
}

TEST(SpeedFit, ALimitedStepWithAFourthIsAcceptedAtOnce) {
  const cluster::Affine device{0.002, 0.001};
  SpeedFit fit = learned(device);
  fit.observe_limited(10, from_seconds(4 * device.at(10)));
  EXPECT_NEAR(fit.fit().fixed, 0.008, 1e-5) << "a batch quite unlike the last one says it as well";
  EXPECT_NEAR(fit.fit().per_sample, 0.004, 1e-6);
  fit.observe_limited(45, from_seconds(device.at(45)));
  EXPECT_NEAR(fit.fit().fixed, 0.002, 1e-5);
  EXPECT_NEAR(fit.fit().per_sample, 0.001, 1e-6);
}

TEST(SpeedFit, ALimitedStepMayBeTheFirst) {
  SpeedFit fit;
  fit.observe_limited(10, from_seconds(0.02));
  EXPECT_EQ(fit.observations(), 1U);
  EXPECT_NEAR(fit.fit().at(10), 0.02, 1e-9);
}

TEST(SpeedFit, ASteadyDeviceHasNoJitter) {
  const cluster::Affine device{0.002, 0.001};
  SpeedFit fit = learned(device);
  for (std::uint32_t i = 0; i < 60; ++i) {
    if (i % 3 == 0)
      fit.observe_limited(20 + i, from_seconds(device.at(20 + i)));
    else
      observe(fit, 20 + i, device);
  }
  EXPECT_LT(fit.jitter(), 1e-4);
  for (const double factor : {4.0, 1.0}) observe(fit, 79, {factor * device.fixed, factor * device.per_sample});
  EXPECT_LT(fit.jitter(), 1e-4) << "a slow period is not jitter";
}

TEST(SpeedFit, JitterOfTenPercentIsFoundWhetherStepsAreLimitedOrNot) {
  for (const bool limited : {false, true}) {
    const cluster::Affine device{0.002, 0.001};
    SpeedFit fit = learned(device);
    Rng rng(4, "speed fit");
    double mean = 0;
    constexpr int steps = 2000;
    for (int i = 0; i < steps; ++i) {
      const auto samples = static_cast<std::uint32_t>(30 + rng.below(20));
      const Duration took = from_seconds(device.at(samples) * rng.log_normal(0.1));
      limited ? fit.observe_limited(samples, took) : fit.observe(samples, took);
      mean += fit.jitter() / steps;
    }
    EXPECT_NEAR(mean, 0.1, 0.012) << (limited ? "limited" : "whole");
  }
}

// Steps that were given up ---------------------------------------------------------------------------------------------------------------

TEST(SpeedFit, AnUnfinishedStepIsALowerBound) {
  const cluster::Affine device{0.002, 0.001};
  SpeedFit fit = learned(device);
  fit.observe_unfinished(40, from_seconds(0.5 * device.at(40)));
  EXPECT_NEAR(fit.fit().at(40), device.at(40), 1e-6) << "given up before it was due: nothing is learned";
  fit.observe_unfinished(40, from_seconds(3 * device.at(40)));
  EXPECT_NEAR(fit.fit().fixed, 0.006, 1e-5) << "everything is scaled";
  EXPECT_NEAR(fit.fit().per_sample, 0.003, 1e-6);
  EXPECT_LT(fit.jitter(), 1e-4) << "that is not jitter";
}

TEST(SpeedFit, AnUnfinishedStepMayBeTheFirst) {
  SpeedFit fit;
  fit.observe_unfinished(10, from_seconds(0.02));
  EXPECT_EQ(fit.observations(), 1U);
  EXPECT_NEAR(fit.fit().at(10), 0.02, 1e-9);
}

TEST(SpeedFit, SamplesPerSecondAreThoseOfTheLastBatch) {
  const cluster::Affine device{0.02, 0.001};
  SpeedFit fit = learned(device);
  observe(fit, 20, device);
  EXPECT_NEAR(fit.samples_per_second(), 20 / device.at(20), 1e-3);
  observe(fit, 80, device);
  EXPECT_NEAR(fit.samples_per_second(), 80 / device.at(80), 1e-3);
}

TEST(Monitor, ACancelledStepCountsWithItsOrderedSamples) {
  Monitor monitor;
  monitor.joined({0});
  monitor.joined({1});
  monitor.given_up({0}, from_seconds(1));
  EXPECT_EQ(monitor.speed({0}).observations(), 0U) << "nothing was ordered";
  monitor.observe({.report = {.samples = 10, .compute = from_seconds(1)}});
  monitor.ordered({0}, 10);
  monitor.ordered({0}, 20);
  monitor.given_up({0}, from_seconds(6));
  EXPECT_NEAR(monitor.speed({0}).fit().at(20), 6, 1e-6);
  EXPECT_EQ(monitor.speed({1}).observations(), 0U) << "and nobody else's";
  EXPECT_THROW(monitor.ordered({2}, 10), Bug);
}

// Transfers -----------------------------------------------------------------------------------------------------------------------------

/// A contribution of worker 0; a time of 0 is no transfer.
Contribution transferred(double push_s, double pull_s, Bits bits) {
  return {.report = {.samples = 1, .compute = from_seconds(1), .pull = from_seconds(pull_s)}, .push = from_seconds(push_s), .bits = bits};
}

TEST(Monitor, ScalesTransfersByBytesPerBits) {
  Monitor monitor({.bytes_32 = 4000, .bytes_16 = 2000, .bytes_8 = 1200, .bytes_4 = 700, .bytes_2 = 400});
  monitor.joined({0});
  EXPECT_FALSE(monitor.transferred({0}));
  EXPECT_EQ(monitor.push_s({0}, 32), 0) << "not known";
  monitor.observe(transferred(0.07, 0.24, {4, 8}));
  EXPECT_TRUE(monitor.transferred({0}));
  EXPECT_NEAR(monitor.push_s({0}, 32), 0.4, 1e-9);
  EXPECT_NEAR(monitor.push_s({0}, 16), 0.2, 1e-9);
  EXPECT_NEAR(monitor.push_s({0}, 4), 0.07, 1e-9);
  EXPECT_NEAR(monitor.push_s({0}, 2), 0.04, 1e-9);
  EXPECT_NEAR(monitor.pull_s({0}, 8), 0.24, 1e-9);
  EXPECT_NEAR(monitor.pull_s({0}, 32), 0.8, 1e-9);
}

TEST(Monitor, Bf16DevicesTransferTwoBytesPerUncodedValue) {
  Monitor monitor({.bytes_32 = 4000, .bytes_16 = 2000, .bytes_8 = 1000, .bytes_4 = 500, .bytes_2 = 250, .coding_s = 0.01});
  monitor.joined({0}, {.bytes_per_value = 2});
  monitor.observe(transferred(0.2, 0.4, {32, 32}));
  EXPECT_NEAR(monitor.push_s({0}, 32), 0.2, 1e-9);
  EXPECT_NEAR(monitor.push_s({0}, 16), 0.2 + 0.01, 1e-9) << "as many bytes, and they must be coded";
  EXPECT_NEAR(monitor.push_s({0}, 8), 0.1 + 0.01, 1e-9);
  EXPECT_NEAR(monitor.pull_s({0}, 8), 0.2 + 0.01, 1e-9);
  for (int i = 0; i < 50; ++i) monitor.observe(transferred(0.11, 0.21, {8, 8}));
  EXPECT_NEAR(monitor.push_s({0}, 32), 0.2, 1e-6) << "whatever bits it is measured with";
}

TEST(Monitor, ATransferWithoutTimeIsNoMeasurement) {
  Monitor monitor;
  monitor.joined({0});
  monitor.observe(transferred(0.4, 0, {32, 32}));
  EXPECT_FALSE(monitor.transferred({0})) << "one way only";
  monitor.observe(transferred(0.4, 0.8, {32, 32}));
  monitor.observe(transferred(0.4, 0, {32, 32}));
  EXPECT_NEAR(monitor.pull_s({0}, 32), 0.8, 1e-9) << "the parameters were there already";
}

TEST(Monitor, FollowsALinkThatChanges) {
  Monitor monitor;
  monitor.joined({0});
  monitor.observe(transferred(0.4, 0.8, {32, 32}));
  monitor.observe(transferred(0.8, 0.8, {32, 32}));
  EXPECT_GT(monitor.push_s({0}, 32), 0.4);
  EXPECT_LT(monitor.push_s({0}, 32), 0.6) << "one strange contribution says little";
  for (int i = 0; i < 30; ++i) monitor.observe(transferred(0.2, 0.4, {8, 8}));
  EXPECT_NEAR(monitor.push_s({0}, 32), 0.8, 0.01) << "whatever bits it is measured with";
  EXPECT_NEAR(monitor.pull_s({0}, 32), 1.6, 0.01);
}

TEST(Monitor, SeparatesLinkTimeFromCodingTime) {
  Monitor monitor({.bytes_32 = 4'000, .bytes_16 = 2'000, .bytes_8 = 1'000, .bytes_4 = 500, .bytes_2 = 250, .coding_s = 0.03});
  monitor.joined({0});
  monitor.observe(transferred(0.04, 0.04, {8, 8}));  // a quarter of it is the link's time
  EXPECT_NEAR(monitor.push_s({0}, 8), 0.04, 1e-9);
  EXPECT_NEAR(monitor.push_s({0}, 32), 0.04, 1e-9);
  EXPECT_NEAR(monitor.pull_s({0}, 4), 0.035, 1e-9);
  monitor.joined({1});
  EXPECT_EQ(monitor.push_s({1}, 8), 0) << "nothing is known";
}

}  // namespace
}  // namespace motley::policy
