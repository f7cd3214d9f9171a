// Sizes that a device has met, and what of a step fits into its time.
#include "cluster/known_batch_sizes.h"

#include <gtest/gtest.h>

#include "cluster/device.h"

namespace motley::cluster {
namespace {

TEST(KnownBatchSizes, NothingIsCutBeforeAStepIsMeasured) {
  KnownBatchSizes sizes;
  EXPECT_EQ(sizes.largest_fitting(100, from_seconds(0.001), 8), 100U);
  sizes.observe(0, from_seconds(1));
  EXPECT_EQ(sizes.largest_fitting(100, from_seconds(0.001), 8), 100U);
}

TEST(KnownBatchSizes, AtLeastOneWholeMultipleFits) {
  KnownBatchSizes sizes;
  sizes.observe(100, from_seconds(1));
  EXPECT_EQ(sizes.largest_fitting(100, Duration{0}, 8), 100U) << "no limit";
  EXPECT_EQ(sizes.largest_fitting(100, from_seconds(2), 8), 100U);
  EXPECT_EQ(sizes.largest_fitting(100, from_seconds(0.5), 8), 48U);
  EXPECT_EQ(sizes.largest_fitting(100, from_seconds(0.5), 8, 20), 24U) << "after 20 others";
  EXPECT_EQ(sizes.largest_fitting(100, from_seconds(0.5), 8, 80), 8U);
  EXPECT_EQ(sizes.largest_fitting(5, from_seconds(0.01), 8), 5U);
}

TEST(KnownBatchSizes, AKnownSizeIsTakenIfItIsNearlyAsLarge) {
  KnownBatchSizes sizes;
  sizes.observe(100, from_seconds(1));
  EXPECT_TRUE(sizes.note_batch_size(43));
  EXPECT_FALSE(sizes.note_batch_size(43));
  EXPECT_EQ(sizes.largest_fitting(100, from_seconds(0.505), 8), 43U);
  EXPECT_EQ(sizes.largest_fitting(100, from_seconds(0.605), 8), 56U) << "much more would fit";
  EXPECT_EQ(sizes.largest_fitting(100, from_seconds(0.405), 8), 40U) << "it does not fit";
}

TEST(KnownBatchSizes, TimePerSampleFollowsTheLastSteps) {
  KnownBatchSizes sizes;
  sizes.observe(100, from_seconds(1));
  for (int i = 0; i < 30; ++i) sizes.observe(100, from_seconds(2));
  EXPECT_EQ(sizes.largest_fitting(100, from_seconds(1.01), 8), 48U);
}

TEST(DeviceWithBatchMultiple, TakesLongerForTheFirstStepOfEachSize) {
  Spec spec;
  spec.nodes.resize(1);
  spec.nodes[0].samples_per_second = 100;
  spec.nodes[0].batch_multiple = 8;
  spec.nodes[0].new_batch_size = from_seconds(0.5);
  Device device(spec, NodeId{0}, 1);
  const auto first = device.work(at_seconds(0), 16, 1, Duration{0}, 1);
  EXPECT_TRUE(first.new_batch_size);
  EXPECT_EQ(first.end, at_seconds(0.66));
  const auto again = device.work(at_seconds(1), 16, 1, Duration{0}, 1);
  EXPECT_FALSE(again.new_batch_size);
  EXPECT_EQ(again.end, at_seconds(1.16));
  const auto local = device.work(at_seconds(2), 64, 4, from_seconds(0.001), 1);
  EXPECT_FALSE(local.new_batch_size) << "four steps of the same size";
  EXPECT_EQ(local.samples, 64U) << "local steps are not cut";
  const auto cut = device.work(at_seconds(3), 32, 1, from_seconds(0.25), 1);
  EXPECT_EQ(cut.samples, 24U);
  EXPECT_TRUE(cut.new_batch_size);
}

}  // namespace
}  // namespace motley::cluster
