// Axes: chosen cases, and any extent at all.
#include "report/scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/rng.h"

namespace motley::report {
namespace {

std::vector<std::string> labels(const Ticks& ticks) {
  std::vector<std::string> out;
  for (const double value : ticks.at) out.push_back(ticks.label(value));
  return out;
}
using Labels = std::vector<std::string>;

TEST(Scale, MapsTheEndsOfItsExtentToTheEndsOfTheDrawing) {
  const Scale up{{10, 20}, 300, 100};
  EXPECT_DOUBLE_EQ(up(10), 300);
  EXPECT_DOUBLE_EQ(up(15), 200);
  EXPECT_DOUBLE_EQ(up(20), 100);
}

TEST(Ticks, StandOnRoundPlaces) {
  EXPECT_EQ(labels(ticks({0, 100}, 5)), (Labels{"0", "20", "40", "60", "80", "100"}));
  EXPECT_EQ(labels(ticks({0, 1}, 4)), (Labels{"0.00", "0.25", "0.50", "0.75", "1.00"}));
  EXPECT_EQ(labels(ticks({3, 17}, 3)), (Labels{"5", "10", "15"}));
  EXPECT_EQ(labels(ticks({0, 2500}, 5)), (Labels{"0", "500", "1,000", "1,500", "2,000", "2,500"}));
  EXPECT_EQ(labels(ticks({0.1, 0.4}, 3)), (Labels{"0.1", "0.2", "0.3", "0.4"}));
}

TEST(Ticks, StayInsideTellApartAndAreFewForAnyExtent) {
  const std::uint64_t seed = 7;
  Rng rng(seed, "ticks");
  for (int i = 0; i < 5000; ++i) {
    const double low = rng.normal() * std::pow(10, rng.uniform() * 8 - 4);
    const double high = low + std::pow(10, rng.uniform() * 10 - 4);
    const int wanted = 1 + static_cast<int>(rng.below(12));
    const Ticks found = ticks({low, high}, wanted);
    SCOPED_TRACE(testing::Message() << "seed " << seed << " case " << i << ": " << low << " to " << high << ", wanted " << wanted);
    ASSERT_LE(found.at.size(), static_cast<std::size_t>(wanted) + 1);
    const double slack = (high - low) * 1e-5;
    for (const double value : found.at) ASSERT_TRUE(value >= low - slack && value <= high + slack) << value;
    const Labels all = labels(found);
    for (std::size_t k = 1; k < all.size(); ++k) ASSERT_NE(all[k - 1], all[k]);
  }
}

TEST(Extent, HoldsTheFiniteValues) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Extent extent = extent_of({nan, 3, -1, std::numeric_limits<double>::infinity(), 2});
  EXPECT_EQ(extent.low, -1);
  EXPECT_EQ(extent.high, 3);
}

TEST(Extent, IsNeverEmpty) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const std::vector<double>& values : std::vector<std::vector<double>>{{}, {nan}, {0}, {5}, {-5, -5}, {1e300}, {1, 1 + 1e-15}}) {
    const Extent extent = extent_of(values);
    EXPECT_LT(extent.low, extent.high);
    EXPECT_FALSE(ticks(extent, 5).at.empty());
  }
}

TEST(Extent, GrowsToRoundPlaces) {
  const Extent extent = rounded_out({0.713, 0.886}, 6);
  EXPECT_NEAR(extent.low, 0.70, 1e-9);
  EXPECT_NEAR(extent.high, 0.90, 1e-9);
  EXPECT_NEAR(rounded_out({0.70, 0.90}, 4).high, 0.90, 1e-9);
}

TEST(Scale, HasTicksOnAxesOfNumbersThatAreHardlyAny) {
  for (const std::vector<double>& values : {std::vector{5e-324}, {0, 5e-324}, {-1e-310, 1e-310}, {1e-299, 2e-299}}) {
    const Extent extent = extent_of(values);
    EXPECT_LT(extent.low, extent.high);
    EXPECT_LE(ticks(extent, 6).at.size(), 13U);
  }
}

}  // namespace
}  // namespace motley::report
