// The costs that follow from a profile, and which reported values are plausible.
#include "cluster/device_profile.h"

#include <gtest/gtest.h>

#include <limits>

namespace motley::cluster {
namespace {

TEST(DeviceProfile, TransfersAreFreeOnlyWhenTheirCostIsKnownToBeAboutZero) {
  EXPECT_FALSE(DeviceProfile{}.free_transfers()) << "not measured";
  EXPECT_TRUE(DeviceProfile{.transfer_s_per_byte = 0}.free_transfers());
  EXPECT_FALSE(DeviceProfile{.transfer_s_per_byte = 1e-11}.free_transfers()) << "100 GB/s";
}

TEST(DeviceProfile, DevicesThatRunAStepAsOnePieceIdleBetweenSteps) {
  EXPECT_EQ(DeviceProfile{}.idle_share(), 0);
  EXPECT_GT(DeviceProfile{.batch_multiple = 4}.idle_share(), 0);
}

TEST(DeviceProfile, ImplausibleMeasurementsCountAsNotMeasured) {
  for (const double wrong : {-1.0, 0.0, 1e-13, 1e13, std::numeric_limits<double>::quiet_NaN()}) {
    const DeviceProfile profile = plausible({.cost = {wrong, wrong}, .batch_multiple = 0});
    EXPECT_EQ(profile.cost.fixed, 0) << wrong;
    EXPECT_FALSE(profile.measured()) << wrong;
    EXPECT_EQ(profile.batch_multiple, 1U);
  }
  const DeviceProfile profile = plausible({.cost = {0.01, 1e-5}, .max_batch = 7, .batch_multiple = 4, .bytes_per_value = 2});
  EXPECT_EQ(profile.cost.fixed, 0.01);
  EXPECT_EQ(profile.cost.per_sample, 1e-5);
  EXPECT_EQ(profile.max_batch, 7U);
  EXPECT_EQ(profile.bytes_per_value, 2U);
}

}  // namespace
}  // namespace motley::cluster
