// Lease: the positions of the epochs' permutations that one worker turns into one contribution.
#pragma once
#include <boost/container/small_vector.hpp>
#include <compare>
#include <cstdint>

namespace motley {

/// Positions first <= p < last of one epoch's permutation.
struct Range {
  std::uint32_t epoch{};
  std::uint64_t first{};
  std::uint64_t last{};
  auto operator<=>(const Range&) const = default;
  [[nodiscard]] std::uint64_t size() const { return last - first; }
};

/// Usually one range; several at the boundary of two epochs, or when it is made of returned pieces.
struct Lease {
  boost::container::small_vector<Range, 2> ranges;
  bool operator==(const Lease&) const = default;
  [[nodiscard]] std::uint64_t size() const {
    std::uint64_t n = 0;
    for (const Range& r : ranges) n += r.size();
    return n;
  }
  [[nodiscard]] bool empty() const { return ranges.empty(); }
  /// Keeps the first `samples` positions and returns the rest.
  Lease cut(std::uint64_t samples) {
    Lease rest;
    std::size_t kept = 0;
    while (kept < ranges.size() && ranges[kept].size() <= samples) samples -= ranges[kept++].size();
    rest.ranges.assign(ranges.begin() + static_cast<std::ptrdiff_t>(kept), ranges.end());
    ranges.resize(kept);
    if (samples > 0 && !rest.empty()) {
      Range& first = rest.ranges.front();
      ranges.push_back({first.epoch, first.first, first.first + samples});
      first.first += samples;
    }
    return rest;
  }
};

}  // namespace motley
