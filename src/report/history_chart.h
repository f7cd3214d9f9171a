// Decisions of one strategy over time: samples per step and bits of each worker, and how far apart the workers of an update finished.
#pragma once
#include <string>

#include "report/comparison.h"

namespace motley::report {

/// Whether batch sizes or bits changed, or samples were returned.
bool has_history(const Row& row);

/// An svg element that needs chart_style() around it. `index` is the row's place in the comparison.
std::string history_chart(const Row& row, std::size_t index);

}  // namespace motley::report
