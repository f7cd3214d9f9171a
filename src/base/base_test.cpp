// The ground: strong ids, time without a clock, results that carry their reason, streams that do not disturb each other.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/ids.h"
#include "base/lease.h"
#include "base/result.h"
#include "base/rng.h"
#include "base/time.h"

namespace motley {
namespace {

TEST(Ids, CountersSayHowFarOneIsAheadOfAnother) {
  EXPECT_EQ((Version{5}.ahead_of(Version{3})), 2U);
  EXPECT_EQ((Version{3}.ahead_of(Version{5})), 0U);
  EXPECT_EQ(Step{1}.next(), Step{2});
}

TEST(Time, SecondsRoundToTheNearestNanosecond) {
  EXPECT_EQ(from_seconds(0.1).count(), 100'000'000);
  EXPECT_EQ(from_seconds(-1.4e-9).count(), -1);
  EXPECT_GT(from_seconds(1e300).count(), 0);
}

TEST(Result, AValueReadFromAFailureIsOurBug) {
  const Result<int> failed = bad_input("no such file");
  EXPECT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "no such file");
  EXPECT_THROW((void)failed.value(), Bug);
}

TEST(Check, TheMessageCarriesTheSentence) {
  try {
    check(1 > 2, "one exceeds two");
    FAIL() << "check let a false promise pass";
  } catch (const Bug& bug) {
    EXPECT_NE(std::string(bug.what()).find("one exceeds two"), std::string::npos);
  }
}

TEST(Rng, AStreamIsItsSeedItsNameAndItsIndex) {
  EXPECT_EQ(Rng(7, "jitter", 3).bits(), Rng(7, "jitter", 3).bits());
  std::set<std::uint64_t> firsts;
  for (std::uint64_t seed : {0, 1, 7})
    for (std::string_view name : {"jitter", "data"})
      for (std::uint64_t index : {0, 1}) firsts.insert(Rng(seed, name, index).bits());
  EXPECT_EQ(firsts.size(), 12U);
}

TEST(Rng, DistributionsHaveTheMomentsTheyClaim) {
  Rng rng(1, "moments");
  double normal = 0, squared = 0, exponential = 0, log_normal = 0;
  constexpr int n = 200'000;
  for (int i = 0; i < n; ++i) {
    const double x = rng.normal();
    normal += x / n;
    squared += x * x / n;
    exponential += rng.exponential(3.0) / n;
    log_normal += rng.log_normal(0.1) / n;
  }
  EXPECT_NEAR(normal, 0.0, 0.01);
  EXPECT_NEAR(squared, 1.0, 0.02);
  EXPECT_NEAR(exponential, 3.0, 0.05);
  EXPECT_NEAR(log_normal, 1.0, 0.005);
}

TEST(Rng, APermutationHoldsEveryNumberOnce) {
  auto order = permutation(1000, Rng(3, "epoch"));
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (std::uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(order[i], i);
}

TEST(Lease, ItsSizeIsTheSumOfItsRanges) {
  Lease lease{{{0, 10, 20}, {1, 0, 5}}};
  EXPECT_EQ(lease.size(), 15U);
}

}  // namespace
}  // namespace motley
