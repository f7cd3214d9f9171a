// From values to places on the drawing, and round numbers for the axes. Knows nothing of SVG.
#pragma once
#include <string>
#include <vector>

namespace motley::report {

/// The values an axis covers; always finite and low < high.
struct Extent {
  double low = 0;
  double high = 1;
};

/// The smallest extent that holds every finite value of `values`; {0, 1} when there is none, widened when all are equal.
Extent extent_of(const std::vector<double>& values);

/// Round places for labels: multiples of 1, 2, 2.5 or 5 times a power of ten.
struct Ticks {
  std::vector<double> at{};  // ascending, all inside the extent (but for rounding)
  int decimals{};            // that tell neighbours apart
  [[nodiscard]] std::string label(double value) const;
};

/// About `wanted` (at least 1) ticks inside `extent`; never more than twice as many, and at least one unless the extent is tiny beside its
/// place.
Ticks ticks(Extent extent, int wanted);

/// `extent` widened to the next round places on both sides.
Extent rounded_out(Extent extent, int wanted);

/// Linear; `from` and `to` are places on the drawing and may run backwards, as y does in SVG.
struct Scale {
  Extent extent;
  double from{};
  double to{};
  [[nodiscard]] double operator()(double value) const { return from + (value - extent.low) / (extent.high - extent.low) * (to - from); }
};

}  // namespace motley::report
