#include "policy/gate/clustering.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.h"

namespace motley::policy {
namespace {

/// Costs of intervals of sorted numbers, from prefix sums. Numbers are taken relative to their mean to lose little by rounding.
class Stretches {
 public:
  explicit Stretches(std::span<const double> sorted) : sums_(sorted.size() + 1), squares_(sorted.size() + 1) {
    const double mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size());
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      sums_[i + 1] = sums_[i] + (sorted[i] - mean);
      squares_[i + 1] = squares_[i] + (sorted[i] - mean) * (sorted[i] - mean);
    }
  }
  /// Of [first, last) as one cluster.
  [[nodiscard]] double cost(std::size_t first, std::size_t last) const {
    const double sum = sums_[last] - sums_[first];
    return std::max(0.0, squares_[last] - squares_[first] - sum * sum / static_cast<double>(last - first));
  }

 private:
  std::vector<double> sums_;
  std::vector<double> squares_;
};

/// One more cluster: best[j] = least over i < j of before[i] + cost(i, j), for j in [low, high); i is within [first, last].
struct Round {
  const Stretches& stretches;
  std::span<const double> before;
  std::span<double> best;
  std::span<std::size_t> cut;

  void solve(std::size_t low, std::size_t high, std::size_t first, std::size_t last) {
    if (low >= high) return;
    const std::size_t j = (low + high) / 2;
    best[j] = std::numeric_limits<double>::infinity();
    for (std::size_t i = first; i <= std::min(last, j - 1); ++i) {
      const double cost = before[i] + stretches.cost(i, j);
      if (cost >= best[j]) continue;
      best[j] = cost;
      cut[j] = i;
    }
    solve(low, j, first, cut[j]);
    solve(j + 1, high, cut[j], last);
  }
};

}  // namespace

Clusters cluster(std::span<const double> numbers, std::uint32_t k) {
  const std::size_t n = numbers.size();
  check(k >= 1 && k <= n, "every cluster has a member");
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return numbers[a] < numbers[b]; });
  std::vector<double> sorted;
  sorted.reserve(n);
  for (const std::size_t i : order) sorted.push_back(numbers[i]);
  const Stretches stretches(sorted);

  std::vector<double> before(n + 1, std::numeric_limits<double>::infinity());
  before[0] = 0;
  std::vector<double> best(n + 1);
  std::vector<std::vector<std::size_t>> cuts(k, std::vector<std::size_t>(n + 1));
  for (std::uint32_t c = 0; c < k; ++c) {  // best[j]: the first j numbers in c+1 clusters
    std::fill(best.begin(), best.end(), std::numeric_limits<double>::infinity());
    Round{stretches, before, best, cuts[c]}.solve(c + 1, n + 1, c, n - 1);
    std::swap(before, best);
  }

  Clusters clusters{std::vector<std::uint32_t>(n), before[n]};
  std::size_t end = n;
  for (std::uint32_t c = k; c-- > 0;) {
    const std::size_t begin = cuts[c][end];
    for (std::size_t i = begin; i < end; ++i) clusters.of[order[i]] = c;
    end = begin;
  }
  return clusters;
}

}  // namespace motley::policy
