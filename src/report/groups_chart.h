// Groups of workers over time: a row per worker in the colour of its group, and below it the learning rate of each group's updates.
#pragma once
#include <cstddef>
#include <string>

#include "report/comparison.h"

namespace motley::report {

/// The row's strategy has groups.
bool has_groups(const Row& row);

/// An svg element that needs chart_style() around it. `index` is the row's place in the comparison.
std::string groups_chart(const Row& row, std::size_t index);

}  // namespace motley::report
