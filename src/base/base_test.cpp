// Strong ids, time without a clock, results with their reason, independent random streams.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/ids.h"
#include "base/lease.h"
#include "base/result.h"
#include "base/rng.h"
#include "base/time.h"

namespace motley {
namespace {

TEST(Ids, Counter_difference_is_zero_when_not_ahead) {
  EXPECT_EQ((Version{5}.ahead_of(Version{3})), 2U);
  EXPECT_EQ((Version{3}.ahead_of(Version{5})), 0U);
  EXPECT_EQ(Step{1}.next(), Step{2});
}

TEST(Time, Seconds_round_to_the_nearest_nanosecond) {
  EXPECT_EQ(from_seconds(0.1).count(), 100'000'000);
  EXPECT_EQ(from_seconds(-1.4e-9).count(), -1);
  EXPECT_GT(from_seconds(1e300).count(), 0);
}

TEST(Result, Reading_the_value_of_an_error_is_a_bug) {
  const Result<int> failed = bad_input("no such file");
  EXPECT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "no such file");
  EXPECT_THROW((void)failed.value(), Bug);
}

TEST(Check, Message_contains_the_sentence) {
  try {
    check(1 > 2, "one exceeds two");
    FAIL() << "check() accepted a false condition";
  } catch (const Bug& bug) {
    EXPECT_NE(std::string(bug.what()).find("one exceeds two"), std::string::npos);
  }
}

TEST(Rng, Stream_depends_on_seed_name_and_index) {
  EXPECT_EQ(Rng(7, "jitter", 3).bits(), Rng(7, "jitter", 3).bits());
  std::set<std::uint64_t> firsts;
  for (std::uint64_t seed : {0, 1, 7})
    for (std::string_view name : {"jitter", "data"})
      for (std::uint64_t index : {0, 1}) firsts.insert(Rng(seed, name, index).bits());
  EXPECT_EQ(firsts.size(), 12U);
}

TEST(Rng, Distributions_have_their_moments) {
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

TEST(Rng, Permutation_has_every_number_once) {
  auto order = permutation(1000, Rng(3, "epoch"));
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (std::uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(order[i], i);
}

TEST(Lease, Size_is_the_sum_of_its_ranges) {
  Lease lease{{{0, 10, 20}, {1, 0, 5}}};
  EXPECT_EQ(lease.size(), 15U);
}

TEST(Lease, Cut_keeps_the_first_positions_across_ranges) {
  const Lease whole{{{0, 10, 20}, {0, 30, 33}, {1, 0, 5}}};
  struct Case {
    std::uint64_t samples;
    Lease kept;
    Lease rest;
  };
  const std::vector<Case> cases{
      {0, {}, whole},
      {4, {{{0, 10, 14}}}, {{{0, 14, 20}, {0, 30, 33}, {1, 0, 5}}}},
      {10, {{{0, 10, 20}}}, {{{0, 30, 33}, {1, 0, 5}}}},
      {12, {{{0, 10, 20}, {0, 30, 32}}}, {{{0, 32, 33}, {1, 0, 5}}}},
      {17, {{{0, 10, 20}, {0, 30, 33}, {1, 0, 4}}}, {{{1, 4, 5}}}},
      {18, whole, {}},
      {19, whole, {}},
  };
  for (const auto& [samples, kept, rest] : cases) {
    Lease lease = whole;
    EXPECT_EQ(lease.cut(samples), rest) << "the rest of " << samples;
    EXPECT_EQ(lease, kept) << "the first " << samples;
  }
}

using Positions = std::vector<std::pair<std::uint32_t, std::uint64_t>>;  // epoch and position, one by one

void append(Positions& positions, const Lease& lease) {
  for (const Range& range : lease.ranges)
    for (std::uint64_t place = range.first; place < range.last; ++place) positions.emplace_back(range.epoch, place);
}

TEST(Lease, Cut_and_rest_are_the_whole_in_order) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Rng rng(seed, "lease");
    Lease lease;
    for (std::uint64_t ranges = rng.below(5); ranges > 0; --ranges) {
      const std::uint64_t first = rng.below(1000);
      lease.ranges.push_back({static_cast<std::uint32_t>(rng.below(3)), first, first + 1 + rng.below(20)});
    }
    Positions all;
    append(all, lease);
    const std::uint64_t samples = rng.below(all.size() + 3);
    const Lease rest = lease.cut(samples);
    EXPECT_EQ(lease.size(), std::min<std::uint64_t>(samples, all.size())) << "seed " << seed;
    Positions joined;
    append(joined, lease);
    append(joined, rest);
    EXPECT_EQ(joined, all) << "seed " << seed;
    for (const Lease& part : {lease, rest})
      for (const Range& range : part.ranges) EXPECT_GT(range.size(), 0U) << "seed " << seed;
  }
}

}  // namespace
}  // namespace motley
