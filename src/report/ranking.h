// Ranking: the order of a comparison's rows by time to target, and how far the seeds of one row lie apart.
// A time that is absent, negative or not finite counts as not reached.
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "report/comparison.h"

namespace motley::report {

/// The row's time to target when it is one.
std::optional<double> reached(const std::optional<double>& time_s);

/// Row indices, soonest first; those that did not reach the target follow by final accuracy, highest first. Ties keep the given order.
std::vector<std::size_t> ranking(const Comparison& comparison);

/// The row that reached the target soonest; absent when none did.
std::optional<std::size_t> fastest(const Comparison& comparison);

/// The seeds of one row that reached the target. `least_s` and `most_s` hold only when `reached` > 0.
struct SeedSpread {
  std::size_t seeds{};
  std::size_t reached{};
  double least_s{};
  double most_s{};
};
SeedSpread seed_spread(const Row& row);

}  // namespace motley::report
