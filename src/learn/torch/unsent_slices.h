// The slices of one contribution that are still to be sent.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/step_io.h"

namespace motley::learn {

class UnsentSlices {
 public:
  void begin(const GradientEncoding& encoding) { slices_ = encoding.slices; }

  /// Removes the slices that lie within [first, last) and returns them, ascending.
  std::vector<GradientEncoding::Slice> take(std::uint64_t first, std::uint64_t last) {
    const auto inside = [&](const GradientEncoding::Slice& slice) { return slice.first >= first && slice.first + slice.count <= last; };
    const auto begin = std::find_if(slices_.begin(), slices_.end(), inside);
    const auto end = std::find_if_not(begin, slices_.end(), inside);
    std::vector<GradientEncoding::Slice> taken(begin, end);
    slices_.erase(begin, end);
    return taken;
  }

 private:
  std::vector<GradientEncoding::Slice> slices_;  // ascending
};

}  // namespace motley::learn
