// Exact clustering of numbers on a line.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace motley::policy {

struct Clusters {
  std::vector<std::uint32_t> of;  // by position in the input: 0 for the smallest numbers
  double cost = 0;                // sum of squared distances from the clusters' means
};

/// The best cut of `numbers` into exactly k clusters, none empty: least cost. 1 <= k <= numbers.size(). Equal numbers may be cut apart only
/// where there are fewer different numbers than clusters. O(k n log n): best places to cut only move right (divide and conquer).
[[nodiscard]] Clusters cluster(std::span<const double> numbers, std::uint32_t k);

}  // namespace motley::policy
