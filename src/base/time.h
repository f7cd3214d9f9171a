// Time as a value. The clock type has no now(): a function that needs the time takes it as an argument.
#pragma once
#include <chrono>
#include <cstdint>

namespace motley {

/// Time of one run, in nanoseconds from its start; virtual in the simulator, real otherwise.
struct Timeline {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<Timeline, duration>;
  static constexpr bool is_steady = true;
};

using Duration = Timeline::duration;
using Instant = Timeline::time_point;

[[nodiscard]] constexpr double seconds(Duration d) { return static_cast<double>(d.count()) * 1e-9; }
[[nodiscard]] constexpr double seconds(Instant t) { return seconds(t.time_since_epoch()); }
/// Rounds to the nearest nanosecond; saturates at 292 years.
[[nodiscard]] constexpr Duration from_seconds(double s) {
  constexpr double limit = 9.2e18;
  const double ns = s * 1e9;
  if (!(ns == ns)) return Duration{0};  // NaN
  if (ns >= limit) return Duration{static_cast<std::int64_t>(limit)};
  if (ns <= -limit) return Duration{static_cast<std::int64_t>(-limit)};
  return Duration{static_cast<std::int64_t>(ns + (ns >= 0 ? 0.5 : -0.5))};
}
[[nodiscard]] constexpr Instant at_seconds(double s) { return Instant{from_seconds(s)}; }

}  // namespace motley
