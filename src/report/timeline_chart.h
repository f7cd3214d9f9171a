// The phases of each worker of one strategy over a window of a few steps: compute, send, wait, receive. Time 0 is the window's beginning.
// At most 32 workers are drawn; the chart says how many more there are.
#pragma once
#include <cstddef>
#include <optional>
#include <string>

#include "report/comparison.h"

namespace motley::report {

/// Seconds that the row's window covers; 0 when nothing was recorded.
double window_s(const Row& row);

/// One time scale for all strategies: the longest window, unless the shortest would shrink to less than a sixth of the chart. Absent: each
/// its own.
std::optional<double> common_window_s(const Comparison& comparison);

/// An svg element that needs chart_style() around it. `index` is the row's place in the comparison; `shown_s` the seconds across, as above.
std::string timeline_chart(const Row& row, std::size_t index, std::optional<double> shown_s);

/// The four phases and their looks, as an svg element.
std::string phase_legend();

}  // namespace motley::report
