// How late the contributions of one strategy were applied, by the state of the whole at that moment: a histogram for each state, all on one
// axis of delays. Heights are scaled to each one's tallest bar, which carries its share.
#pragma once
#include <cstddef>
#include <string>

#include "report/comparison.h"

namespace motley::report {

/// An svg element that needs chart_style() around it. `index` is the row's place in the comparison.
std::string state_staleness_chart(const Row& row, std::size_t index);

}  // namespace motley::report
