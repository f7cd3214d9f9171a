// The bars are histogram.h's; here is what stands around them.
#include "report/staleness_chart.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/axes.h"
#include "report/canvas.h"
#include "report/histogram.h"
#include "report/text.h"

namespace motley::report {
namespace {

constexpr double chart_width = 344;
constexpr double plot_height = 92;

}  // namespace

std::size_t staleness_bars(const Comparison& comparison) {
  std::size_t seen = 0;
  for (const Row& row : comparison.rows) seen = std::max(seen, delays_seen(row.staleness));
  return bars_for(seen);
}

std::string staleness_chart(const Row& row, std::size_t index, std::size_t bars) {
  const bool empty = delays_seen(row.staleness) == 0;
  const Box plot{6, 48, chart_width - 12, plot_height};
  Canvas canvas;
  canvas.strategy(index, "", [&] {
    canvas.polyline({{6, 14}, {28, 14}}, "mean");
    canvas.text({36, 18}, shorten(printable(row.strategy), 22), "strong", row.strategy);
    if (empty) return nothing_to_show(canvas, plot, "No contribution was applied.");
    canvas.text({plot.right(), 18}, delays_text(row.staleness), "small end");
    draw_histogram(canvas, row.staleness, plot, bars, "bar");
  });
  const Drawing drawing{.id = fmt::format("staleness-{}", index),
                        .title = fmt::format("{}: staleness of contributions", row.strategy),
                        .description = empty ? "Nothing was applied." : fmt::format("Versions late: {}.", delays_text(row.staleness)),
                        .width = chart_width,
                        .height = plot.bottom() + 22};
  return inline_svg(drawing, canvas);
}

}  // namespace motley::report
