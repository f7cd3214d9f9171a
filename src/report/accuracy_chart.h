// Accuracy over time, one bold mean curve per strategy with its seeds faint behind it, the target as a dotted line, and a legend in the
// order of arrival. The view ends some time after the last arrival at the target, and leaves out the steep beginning that all strategies
// share.
#pragma once
#include <string>

#include "report/comparison.h"

namespace motley::report {

/// For the page: an svg element that needs chart_style() around it.
std::string accuracy_chart(const Comparison& comparison);

/// An SVG file of its own for a README: brings its style and ground, reads well on light and dark pages.
std::string accuracy_svg(const Comparison& comparison);

}  // namespace motley::report
