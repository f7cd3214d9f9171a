// Axes around a plot: grid lines, labels at round places, captions. Horizontal values run right, vertical ones up.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "report/canvas.h"
#include "report/scale.h"

namespace motley::report {

/// How a tick reads; the ticks know how many decimals tell them apart.
using Label = std::function<std::string(const Ticks&, double)>;

/// Vertical grid lines through `plot`, their labels and, unless empty, the caption below it.
void axis_below(Canvas& canvas, Box plot, const Scale& x, const Ticks& ticks, const Label& label, std::string_view caption);

/// Horizontal grid lines through `plot`, labels on its left, the caption above its left edge.
void axis_left(Canvas& canvas, Box plot, const Scale& y, const Ticks& ticks, const Label& label, std::string_view caption);

/// The bare number.
std::string plain_label(const Ticks& ticks, double value);

/// Shares as percentages: 0.865 -> "86.5 %", with two decimals less than the shares need.
std::string percent_label(const Ticks& ticks, double share);

/// The text in a plot without data.
void nothing_to_show(Canvas& canvas, Box plot, std::string_view why);

}  // namespace motley::report
