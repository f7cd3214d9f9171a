// Exact one-dimensional k-means clustering.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace motley::policy {

struct Clusters {
  std::vector<std::uint32_t> of;  // by position in the input: 0 for the smallest numbers
  double cost = 0;                // sum of squared distances from the clusters' means
};

/// The clustering of `numbers` into exactly k clusters with the least cost, none empty. 1 <= k <= numbers.size(). Equal numbers are in one
/// cluster unless there are fewer different numbers than clusters. O(k n log n) by divide and conquer: optimal cuts are monotone.
[[nodiscard]] Clusters cluster(std::span<const double> numbers, std::uint32_t k);

}  // namespace motley::policy
