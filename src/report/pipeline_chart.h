// A few mini-batches of a pipeline: a lane per stage, with its forwards, the gradients of inputs and of weights, and what is idle between.
#pragma once
#include <cstddef>
#include <string>

#include "report/comparison.h"

namespace motley::report {

/// The row is a pipeline's, and something of it was kept to be drawn.
bool has_pipeline(const Row& row);

/// An svg element that needs chart_style() around it. `index` is the row's place in the comparison.
std::string pipeline_chart(const Row& row, std::size_t index);
/// The same as a file of its own.
std::string pipeline_svg(const Row& row, std::size_t index);

}  // namespace motley::report
