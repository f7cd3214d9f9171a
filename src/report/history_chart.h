// How one strategy planned: over time the samples that each worker did per step, the bits that it travelled with, and how far apart the
// workers of an update finished.
#pragma once
#include <string>

#include "report/comparison.h"

namespace motley::report {

/// Something in it was decided anew: batches or bits that changed, samples that went to others.
bool has_history(const Row& row);

/// An svg element that needs chart_style() around it. `index` is the row's place in the comparison.
std::string history_chart(const Row& row, std::size_t index);

}  // namespace motley::report
