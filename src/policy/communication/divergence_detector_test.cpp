// Divergence: a loss that rises by a fifth or gradients that double are detected; noise, one outlier and the first updates are not.
#include "policy/communication/divergence_detector.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace motley::policy {
namespace {

/// One update of two contributions with this mean loss and norm.
bool update(DivergenceDetector& detector, double loss, double norm) {
  const auto contribution = [](std::uint32_t samples, double mean_loss, double mean_norm) {
    return Contribution{.report = {.samples = samples, .loss_sum = mean_loss * samples, .squared_norm = mean_norm * mean_norm}};
  };
  detector.contributed(contribution(10, 2 * loss, 2 * norm));
  detector.contributed(contribution(30, loss * 2 / 3, norm * 2 / 3));
  return detector.updated();
}

/// How many such updates it takes until it is detected; none within 200: 0.
int detected_after(DivergenceDetector& detector, double loss, double norm) {
  for (int i = 1; i <= 200; ++i)
    if (update(detector, loss, norm)) return i;
  return 0;
}

DivergenceDetector stable(int updates = 400) {
  DivergenceDetector detector;
  for (int i = 0; i < updates; ++i) EXPECT_FALSE(update(detector, 1, 1));
  return detector;
}

TEST(DivergenceDetector, ALossAFifthHigherIsDetectedWithinTensOfUpdates) {
  DivergenceDetector rising = stable();
  const int after = detected_after(rising, 1.3, 1);
  EXPECT_GT(after, 5) << "one strange batch says nothing";
  EXPECT_LT(after, 40);
  DivergenceDetector steady = stable();
  EXPECT_EQ(detected_after(steady, 1.19, 1), 0);
}

TEST(DivergenceDetector, GradientsTwiceAsLargeAreDetected) {
  DivergenceDetector growing = stable();
  EXPECT_NE(detected_after(growing, 1, 4), 0);
  DivergenceDetector steady = stable();
  EXPECT_EQ(detected_after(steady, 1, 1.9), 0);
}

TEST(DivergenceDetector, LossSpikesAreDetectedAfterThreeUpdates) {
  DivergenceDetector detector = stable();
  EXPECT_EQ(detected_after(detector, 1.6, 1), 3);
  DivergenceDetector young = stable(25);
  EXPECT_EQ(detected_after(young, 5, 1), 3);
  DivergenceDetector strange = stable();
  for (int i = 0; i < 40; ++i) EXPECT_FALSE(update(strange, i % 20 < 2 ? 1.6 : 1, 1)) << "two at a time are an accident";
}

TEST(DivergenceDetector, TheRiseCountsFromTheLowestLoss) {
  DivergenceDetector detector = stable();
  for (int i = 0; i < 200; ++i) EXPECT_FALSE(update(detector, 0.5, 1));
  EXPECT_NE(detected_after(detector, 0.65, 1), 0);
}

TEST(DivergenceDetector, AveragesAreTheNewReferenceAfterADivergence) {
  DivergenceDetector detector = stable();
  ASSERT_NE(detected_after(detector, 1.3, 1), 0);
  EXPECT_EQ(detected_after(detector, 1.3, 1), 0) << "what is usual now is no divergence";
  EXPECT_NE(detected_after(detector, 1.7, 1), 0);
}

TEST(DivergenceDetector, TheFirstUpdatesDetectNothing) {
  DivergenceDetector detector;
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(update(detector, 1 + 0.2 * i, 1 + 0.5 * i));
  for (int i = 20; i < 49; ++i) EXPECT_FALSE(update(detector, 3, 1 + 0.5 * i)) << "unless they soar";
}

TEST(DivergenceDetector, NoiseIsNoDivergence) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed, "divergence");
    DivergenceDetector detector;
    for (int i = 0; i < 2000; ++i)
      ASSERT_FALSE(update(detector, rng.log_normal(0.1), rng.log_normal(0.3))) << "update " << i << ", seed " << seed;
  }
}

TEST(DivergenceDetector, AnUpdateWithoutContributionsChangesNothing) {
  DivergenceDetector detector = stable();
  EXPECT_FALSE(detector.updated());
  EXPECT_EQ(detected_after(detector, 1.19, 1), 0);
}

TEST(DivergenceDetector, ASavedStateContinuesUnchanged) {
  DivergenceDetector first = stable();
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(update(first, 1.3, 1));
  SavedState state;
  StateWriter writer(state);
  first.save(writer);
  DivergenceDetector second;
  StateReader reader(state);
  second.restore(reader);
  EXPECT_TRUE(reader.finish().ok());
  EXPECT_EQ(detected_after(second, 1.3, 1), detected_after(first, 1.3, 1));
}

}  // namespace
}  // namespace motley::policy
