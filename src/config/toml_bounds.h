// Which numbers a key accepts, and the words for it in an error: "above 0", "from 0 to below 1".
#pragma once
#include <limits>
#include <string>

namespace motley::config {

/// Two tiers: what the words promise (low, high), and the sober limits behind them (least, most) that keep a typing error from asking
/// for a step that never ends or for all memory. Words name a limit only to who breaks it.
struct Bounds {
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  double low = -infinity;
  double high = infinity;
  bool low_open = false;   // low itself is refused
  bool high_open = false;  // high itself is refused
  double least = -infinity;
  double most = infinity;

  [[nodiscard]] Bounds no_less_than(double x) const;
  [[nodiscard]] Bounds no_more_than(double x) const;

  /// NaN and infinities are never accepted.
  [[nodiscard]] bool accepts(double x) const;
  /// Why `refused` is: words to follow "a number " or "an integer ". Without a number at hand give low.
  [[nodiscard]] std::string words(double refused) const;
};

[[nodiscard]] Bounds above(double low);
[[nodiscard]] Bounds at_least(double low);
[[nodiscard]] Bounds between(double low, double high);        // both accepted
[[nodiscard]] Bounds from_to_below(double low, double high);  // high refused
[[nodiscard]] Bounds above_up_to(double low, double high);    // low refused

}  // namespace motley::config
