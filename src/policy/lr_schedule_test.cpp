// The learning rate over the samples, and the sum that a look-ahead is.
#include "policy/lr_schedule.h"

#include <gtest/gtest.h>

namespace motley::policy {
namespace {

constexpr std::uint32_t batch = 100;
constexpr std::uint64_t epoch = 1000;
constexpr std::uint64_t total = 10'000;

LrSchedule schedule(const LrScheduleSpec& spec) { return {spec, batch, epoch, total}; }

TEST(LrSchedule, ConstantIsConstant) {
  const LrSchedule constant = schedule({.lr = 0.02});
  for (const std::uint64_t samples : {0U, 5000U, 10'000U, 99'999U}) EXPECT_DOUBLE_EQ(constant.rate(samples), 0.02);
}

TEST(LrSchedule, WarmUpRisesByOneGlobalBatchAtATime) {
  const LrSchedule warm = schedule({.lr = 1.0, .warmup = 4});
  EXPECT_DOUBLE_EQ(warm.rate(0), 0.25);
  EXPECT_DOUBLE_EQ(warm.rate(batch), 0.5);
  EXPECT_DOUBLE_EQ(warm.rate(2 * batch), 0.75);
  EXPECT_DOUBLE_EQ(warm.rate(3 * batch), 1.0);
  EXPECT_DOUBLE_EQ(warm.rate(4 * batch), 1.0);
}

TEST(LrSchedule, StepsFallAtTheirEpochs) {
  const LrSchedule steps = schedule({.kind = LrScheduleSpec::Kind::step, .lr = 1.0, .step_every_epochs = 2, .step_factor = 0.1});
  EXPECT_DOUBLE_EQ(steps.rate(0), 1.0);
  EXPECT_DOUBLE_EQ(steps.rate(2 * epoch - 1), 1.0);
  EXPECT_DOUBLE_EQ(steps.rate(2 * epoch), 0.1);
  EXPECT_NEAR(steps.rate(4 * epoch), 0.01, 1e-15);
}

TEST(LrSchedule, TheCosineFallsFromTheRateToItsFinalFraction) {
  const LrSchedule cosine = schedule({.kind = LrScheduleSpec::Kind::cosine, .lr = 2.0, .final_fraction = 0.1});
  EXPECT_DOUBLE_EQ(cosine.rate(0), 2.0);
  EXPECT_NEAR(cosine.rate(total / 2), 1.1, 1e-12);
  EXPECT_NEAR(cosine.rate(total), 0.2, 1e-12);
  EXPECT_NEAR(cosine.rate(2 * total), 0.2, 1e-12) << "beyond the end it stays";
  for (std::uint64_t samples = 100; samples <= total; samples += 100) EXPECT_LT(cosine.rate(samples), cosine.rate(samples - 100));
}

TEST(LookAhead, IsTheSumOfPowersOfTheMomentum) {
  EXPECT_EQ(look_ahead(0.9, 0), 0);
  EXPECT_DOUBLE_EQ(look_ahead(0.9, 1), 0.9);
  EXPECT_DOUBLE_EQ(look_ahead(0.9, 4), 0.9 + 0.81 + 0.729 + 0.6561);
  EXPECT_NEAR(look_ahead(0.9, 1000), 0.9 / (1 - 0.9), 1e-9);
  EXPECT_EQ(look_ahead(0, 3), 0);
}

}  // namespace
}  // namespace motley::policy
