// Ordering and spreads; nothing here writes text.
#include "report/ranking.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace motley::report {

std::optional<double> reached(const std::optional<double>& time_s) {
  return time_s && std::isfinite(*time_s) && *time_s >= 0 ? time_s : std::nullopt;
}

std::vector<std::size_t> ranking(const Comparison& comparison) {
  // Smaller is better in both parts: whether it arrived at all, then the time or the negated accuracy.
  const auto place = [&](std::size_t i) {
    const Row& row = comparison.rows[i];
    if (const auto time = reached(row.time_to_target_s)) return std::pair{0, *time};
    return std::pair{1, std::isfinite(row.final_accuracy_mean) ? -row.final_accuracy_mean : 0.0};
  };
  std::vector<std::size_t> order(comparison.rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return place(a) < place(b); });
  return order;
}

std::optional<std::size_t> fastest(const Comparison& comparison) {
  if (comparison.rows.empty()) return std::nullopt;
  const std::size_t first = ranking(comparison).front();
  return reached(comparison.rows[first].time_to_target_s) ? std::optional{first} : std::nullopt;
}

SeedSpread seed_spread(const Row& row) {
  SeedSpread spread{.seeds = row.time_to_target_per_seed.size()};
  for (const auto& seed : row.time_to_target_per_seed)
    if (const auto time = reached(seed)) {
      spread.least_s = spread.reached == 0 ? *time : std::min(spread.least_s, *time);
      spread.most_s = spread.reached == 0 ? *time : std::max(spread.most_s, *time);
      ++spread.reached;
    }
  return spread;
}

}  // namespace motley::report
