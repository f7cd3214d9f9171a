// The look of the charts: colours, line styles and type, for light and dark grounds and for paper.
// Colours are those of Okabe and Ito ("Color Universal Design", 2008), which stay apart for colour-blind eyes, without the yellow (too pale
// on white) and slightly darkened or lightened to stand out on their ground. After seven strategies the colours come again, dashed, then
// dotted.
#pragma once
#include <cstddef>
#include <string>

#include "report/comparison.h"

namespace motley::report {

/// Classes that give strategy number `row` its colour and dash: "s1 dash0". Line 14 looks like line 0 dotted; from 21 on looks repeat.
std::string strategy_class(std::size_t row);

/// A short piece of the strategy's line, as an inline svg element; decoration only, hidden from screen readers.
std::string swatch(std::size_t row);

/// Class of a span of a worker's time.
std::string_view phase_class(Phase phase);
/// "compute", "send", "wait", "receive".
std::string_view phase_name(Phase phase);

/// The style sheet that the charts need; it applies to elements inside class "chart" and to swatches.
std::string chart_style();

}  // namespace motley::report
