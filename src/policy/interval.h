// Intervals: how many local steps a worker takes before it contributes. `fixed`: always the same number.
#pragma once
#include <cstdint>

#include "base/ids.h"

namespace motley::policy {

class Interval {
 public:
  explicit Interval(std::uint32_t steps = 1) : steps_(steps) {}
  [[nodiscard]] std::uint32_t steps(WorkerId) const { return steps_; }

 private:
  std::uint32_t steps_;
};

}  // namespace motley::policy
