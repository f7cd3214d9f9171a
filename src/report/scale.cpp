// Round strides: the smallest of 1, 2, 2.5, 5, 10 times a power of ten that needs no more steps than wanted.
#include "report/scale.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "report/number.h"

namespace motley::report {
namespace {

struct Stride {
  double size{};
  int decimals{};
};

/// The smallest round stride that needs at most `wanted` steps to cross the extent.
Stride round_stride(Extent extent, int wanted) {
  check(wanted >= 1, "an axis wants at least one tick");
  check(std::isfinite(extent.low) && std::isfinite(extent.high) && extent.low < extent.high, "an extent is finite and not empty");
  struct Round {
    double factor;
    int more_decimals;
  };
  constexpr std::array rounds{Round{1, 0}, Round{2, 0}, Round{2.5, 1}, Round{5, 0}, Round{10, -1}};
  const double raw = (extent.high - extent.low) / wanted;
  const int power = static_cast<int>(std::floor(std::log10(raw)));
  const double unit = std::pow(10.0, power);
  for (const Round& round : rounds)
    // The slack keeps 0.30000000000000004 from being taken for more than 0.3.
    if (round.factor * unit >= raw * (1 - 1e-9)) return {round.factor * unit, std::max(0, -power + round.more_decimals)};
  return {10 * unit, std::max(0, -power - 1)};
}

}  // namespace

Extent extent_of(const std::vector<double>& values) {
  bool any = false;
  Extent extent;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    extent = any ? Extent{std::min(extent.low, value), std::max(extent.high, value)} : Extent{value, value};
    any = true;
  }
  constexpr double nothing = 1e-300;  // parts of what is smaller may be no number
  const double least = std::max(std::max(std::abs(extent.low), std::abs(extent.high)) * 1e-9, nothing);
  if (extent.high - extent.low > least) return extent;
  const double margin = std::abs(extent.low) < nothing ? 0.5 : std::abs(extent.low) * 0.05;
  return {extent.low - margin, extent.high + margin};
}

std::string Ticks::label(double value) const { return show_fixed(value, decimals); }

Ticks ticks(Extent extent, int wanted) {
  const Stride stride = round_stride(extent, wanted);
  const double slack = stride.size * 1e-6;
  const double first = std::ceil((extent.low - slack) / stride.size);
  Ticks found{.decimals = stride.decimals};
  for (int i = 0; i <= 2 * wanted; ++i) {
    const double value = (first + i) * stride.size;
    if (value > extent.high + slack) break;
    found.at.push_back(value);
  }
  return found;
}

Extent rounded_out(Extent extent, int wanted) {
  const double stride = round_stride(extent, wanted).size;
  return {std::floor(extent.low / stride + 1e-6) * stride, std::ceil(extent.high / stride - 1e-6) * stride};
}

}  // namespace motley::report
