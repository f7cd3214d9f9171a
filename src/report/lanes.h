// Rows under each other, one per worker, on one axis of time: where each row lies and what it is called. At most 32 are drawn; the chart
// says how many more there are.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "report/canvas.h"

namespace motley::report {

struct Lanes {
  Box plot;             // all rows together, right of their names
  std::size_t shown{};  // of the rows
  double pitch{};       // from row to row
  [[nodiscard]] Box row(std::size_t index) const {
    return {plot.x, plot.y + pitch * static_cast<double>(index) + 1.5, plot.width, pitch - 3};
  }
};

/// Rows for `names`, from `top` down; names and rows together are `across` wide.
Lanes lanes(const std::vector<std::string>& names, double top, double across);

/// Left of `row`; shortened, with all of it as a tip.
void lane_name(Canvas& canvas, Box row, std::string_view name);

/// "and 3 more workers"; empty when all are shown.
std::string more_lanes(const Lanes& lanes, std::size_t all);

}  // namespace motley::report
