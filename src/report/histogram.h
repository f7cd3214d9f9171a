// Delays as bars: how large a share of the contributions was applied how many versions late. Heights are scaled to the tallest bar, which
// carries its share.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/canvas.h"

namespace motley::report {

using Histogram = std::vector<std::uint64_t>;  // [k]: contributions k versions late

/// Largest delay that occurred, plus one; 0 when nothing was applied.
std::size_t delays_seen(const Histogram& histogram);

/// As many as `delays`, at least 5, at most 24: the last then gathers the rest.
std::size_t bars_for(std::size_t delays);

/// How many contributions there are.
double total(const Histogram& histogram);

/// "mean 0.75, most 1". Not of an empty one.
std::string delays_text(const Histogram& histogram);

/// Bars of class `css`, their axis and its labels below `plot`. Not of an empty one.
void draw_histogram(Canvas& canvas, const Histogram& histogram, Box plot, std::size_t bars, std::string_view css);

}  // namespace motley::report
