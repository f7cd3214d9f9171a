// Exact clustering against its slow clear twin: every way to cut the sorted numbers.
#include "policy/gate/clustering.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "base/check.h"
#include "base/rng.h"

namespace motley::policy {
namespace {

using Numbers = std::vector<double>;

/// Of [first, last) as one cluster, the way it is written in a book.
double cost_of_one(const Numbers& sorted, std::size_t first, std::size_t last) {
  double mean = 0;
  for (std::size_t i = first; i < last; ++i) mean += sorted[i] / static_cast<double>(last - first);
  double cost = 0;
  for (std::size_t i = first; i < last; ++i) cost += (sorted[i] - mean) * (sorted[i] - mean);
  return cost;
}

/// The least cost of [first, end) in k clusters, none empty: every place for the first cut is tried.
double least_cost(const Numbers& sorted, std::size_t first, std::uint32_t k) {
  if (k == 1) return cost_of_one(sorted, first, sorted.size());
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t cut = first + 1; cut + k - 1 <= sorted.size(); ++cut)
    least = std::min(least, cost_of_one(sorted, first, cut) + least_cost(sorted, cut, k - 1));
  return least;
}

/// The cost of the clusters that were found, computed independently.
double cost_as_found(const Numbers& numbers, const Clusters& clusters, std::uint32_t k) {
  double cost = 0;
  for (std::uint32_t c = 0; c < k; ++c) {
    Numbers members;
    for (std::size_t i = 0; i < numbers.size(); ++i)
      if (clusters.of[i] == c) members.push_back(numbers[i]);
    cost += cost_of_one(members, 0, members.size());
  }
  return cost;
}

void expect_ordered_and_none_empty(const Numbers& numbers, const Clusters& clusters, std::uint32_t k) {
  ASSERT_EQ(clusters.of.size(), numbers.size());
  EXPECT_EQ(std::set(clusters.of.begin(), clusters.of.end()).size(), k) << "none is empty";
  EXPECT_LT(*std::max_element(clusters.of.begin(), clusters.of.end()), k);
  std::vector<std::size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return std::pair(numbers[a], clusters.of[a]) < std::pair(numbers[b], clusters.of[b]); });
  for (std::size_t i = 1; i < order.size(); ++i) EXPECT_LE(clusters.of[order[i - 1]], clusters.of[order[i]]) << "0 is the smallest";
}

/// Equal numbers are together where there are as many different ones as clusters.
void expect_equals_together(const Numbers& numbers, const Clusters& clusters, std::uint32_t k) {
  if (std::set(numbers.begin(), numbers.end()).size() < k) return;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (numbers[i] == numbers[j]) {
        EXPECT_EQ(clusters.of[i], clusters.of[j]);
      }
}

/// In a third of all cases few different values, in a third all far from zero.
Numbers some_numbers(Rng& rng) {
  Numbers numbers(1 + rng.below(10));
  const std::uint64_t kind = rng.below(3);
  for (double& number : numbers) {
    if (kind == 0) number = static_cast<double>(rng.below(4));
    if (kind == 1) number = 10 * rng.uniform() - 5;
    if (kind == 2) number = 1e6 + rng.normal();
  }
  return numbers;
}

TEST(Clustering, EqualsTheBestOfAllPartitions) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed, "clustering");
    const Numbers numbers = some_numbers(rng);
    const auto k = static_cast<std::uint32_t>(1 + rng.below(std::min<std::uint64_t>(4, numbers.size())));
    const Clusters clusters = cluster(numbers, k);
    Numbers sorted = numbers;
    std::sort(sorted.begin(), sorted.end());
    const double least = least_cost(sorted, 0, k);
    EXPECT_NEAR(clusters.cost, least, 1e-8);
    EXPECT_NEAR(cost_as_found(numbers, clusters, k), least, 1e-8);
    expect_ordered_and_none_empty(numbers, clusters, k);
    expect_equals_together(numbers, clusters, k);
  }
}

TEST(Clustering, AsManyClustersAsNumbersCostNothing) {
  const Clusters clusters = cluster(Numbers{3, 1, 2, 1}, 4);
  EXPECT_EQ(clusters.cost, 0);
  EXPECT_EQ(clusters.of[0], 3U);
  EXPECT_EQ(clusters.of[2], 2U);
  EXPECT_NE(clusters.of[1], clusters.of[3]) << "the equal ones are cut apart: there are fewer different numbers than clusters";
}

TEST(Clustering, OneClusterHoldsAll) {
  const Clusters clusters = cluster(Numbers{1, 3}, 1);
  EXPECT_EQ(clusters.of, (std::vector<std::uint32_t>{0, 0}));
  EXPECT_DOUBLE_EQ(clusters.cost, 2);
}

TEST(Clustering, FindsFourClustersAmongTenThousandNumbers) {
  constexpr std::uint32_t n = 10'000;
  Rng rng(1, "heaps");
  Numbers numbers(n);
  std::vector<std::uint32_t> heap(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    heap[i] = static_cast<std::uint32_t>(rng.below(4));
    numbers[i] = 10 * heap[i] + rng.uniform();
  }
  EXPECT_EQ(cluster(numbers, 4).of, heap);
  for (const std::uint32_t k : {2U, 3U, 7U}) expect_ordered_and_none_empty(numbers, cluster(numbers, k), k);
}

TEST(Clustering, MoreClustersThanNumbersIsABug) {
  EXPECT_THROW((void)cluster(Numbers{1, 2}, 3), Bug);
  EXPECT_THROW((void)cluster(Numbers{1, 2}, 0), Bug);
  EXPECT_THROW((void)cluster(Numbers{}, 0), Bug);
  EXPECT_THROW((void)cluster(Numbers{}, 1), Bug);
}

}  // namespace
}  // namespace motley::policy
