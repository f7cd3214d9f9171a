#include "config/toml_bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace motley::config {

Bounds Bounds::no_less_than(double x) const {
  Bounds out = *this;
  out.least = x;
  return out;
}

Bounds Bounds::no_more_than(double x) const {
  Bounds out = *this;
  out.most = x;
  return out;
}

Bounds Bounds::in(const char* name) const {
  Bounds out = *this;
  out.unit = name;
  return out;
}

bool Bounds::accepts(double x) const {
  const bool above_low = low_open ? x > low : x >= low;
  const bool below_high = high_open ? x < high : x <= high;
  return std::isfinite(x) && above_low && below_high && x >= least && x <= most;
}

std::string Bounds::words(double refused) const {
  const bool inside = (low_open ? refused > low : refused >= low) && (high_open ? refused < high : refused <= high);
  if (inside && refused < least) return fmt::format("of at least {}", least);
  if (inside && refused > most) return fmt::format("of at most {}", most);
  if (high == infinity) return low_open ? fmt::format("above {}", low) : fmt::format("of at least {}", low);
  if (low_open) return fmt::format("above {} and at most {}", low, high);
  return fmt::format("from {} to {}{}", low, high_open ? "below " : "", high);
}

std::string Bounds::range() const {
  std::string text;
  if (low_open && low != -infinity && least <= low)
    text = fmt::format("above {:.10g}", low);
  else if (low != -infinity || least != -infinity)
    text = fmt::format("at least {:.10g}", std::max(low, least));
  const double end = std::min(high, most);
  if (end != infinity) text += fmt::format("{}{} {:.10g}", text.empty() ? "" : ", ", high_open && high <= most ? "below" : "at most", end);
  return text;
}

Bounds above(double low) { return {.low = low, .low_open = true}; }
Bounds at_least(double low) { return {.low = low}; }
Bounds between(double low, double high) { return {.low = low, .high = high}; }
Bounds from_to_below(double low, double high) { return {.low = low, .high = high, .high_open = true}; }
Bounds above_up_to(double low, double high) { return {.low = low, .high = high, .low_open = true}; }

}  // namespace motley::config
