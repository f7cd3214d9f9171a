// Limits on numbers, and their description in errors: "above 0", "from 0 to below 1".
#pragma once
#include <limits>
#include <string>

namespace motley::config {

/// Two pairs of limits: the documented ones (low, high), and wider ones (least, most) that catch typing errors, such as a step that never
/// ends. An error names the wider ones only when a value breaks them.
struct Bounds {
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  double low = -infinity;
  double high = infinity;
  bool low_open = false;   // low itself is refused
  bool high_open = false;  // high itself is refused
  double least = -infinity;
  double most = infinity;
  const char* unit = "";  // for the reference page: "seconds", "samples"

  [[nodiscard]] Bounds no_less_than(double x) const;
  [[nodiscard]] Bounds no_more_than(double x) const;
  [[nodiscard]] Bounds in(const char* unit) const;

  /// NaN and infinities are never accepted.
  [[nodiscard]] bool accepts(double x) const;
  /// Why `refused` is refused: the words after "a number " or "an integer ". Without a refused number, pass low.
  [[nodiscard]] std::string words(double refused) const;
  /// All limits, for the reference page: "above 0, at most 1e+06".
  [[nodiscard]] std::string range() const;
};

[[nodiscard]] Bounds above(double low);
[[nodiscard]] Bounds at_least(double low);
[[nodiscard]] Bounds between(double low, double high);        // both accepted
[[nodiscard]] Bounds from_to_below(double low, double high);  // high refused
[[nodiscard]] Bounds above_up_to(double low, double high);    // low refused

}  // namespace motley::config
