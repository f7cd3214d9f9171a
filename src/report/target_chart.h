// Time to target as bars, soonest first: the mean curve's time, a whisker from the soonest to the latest seed, one dot per seed.
#pragma once
#include <string>

#include "report/comparison.h"

namespace motley::report {

/// An svg element that needs chart_style() around it.
std::string target_chart(const Comparison& comparison);

}  // namespace motley::report
