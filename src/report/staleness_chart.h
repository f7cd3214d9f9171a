// How late the contributions of one strategy were applied: a histogram over versions. All strategies share the axis of delays;
// heights are scaled to each one's tallest bar, which carries its share.
#pragma once
#include <cstddef>
#include <string>

#include "report/comparison.h"

namespace motley::report {

/// Bars that hold every strategy's delays: one more than the largest delay seen, at least 5, at most 24 (the last then gathers the rest).
std::size_t staleness_bars(const Comparison& comparison);

/// An svg element that needs chart_style() around it. `index` is the row's place in the comparison; `bars` as above.
std::string staleness_chart(const Row& row, std::size_t index, std::size_t bars);

}  // namespace motley::report
