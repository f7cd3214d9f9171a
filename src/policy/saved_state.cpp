#include "policy/saved_state.h"

#include <cmath>

namespace motley::policy {

double SavedState::number(double least, double most) {
  if (left_.empty()) {
    good_ = false;
    return 0;
  }
  const double value = left_.front();
  left_ = left_.subspan(1);
  if (value >= least && value <= most) return value;  // false for what is no number, too
  good_ = false;
  return 0;
}

std::uint64_t SavedState::count(std::uint64_t most) {
  const double value = number(0, static_cast<double>(most));
  if (value == std::floor(value)) return static_cast<std::uint64_t>(value);
  good_ = false;
  return 0;
}

}  // namespace motley::policy
