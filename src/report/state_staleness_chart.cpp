// One plot under the other; a state in which nothing was applied says so in a line.
#include "report/state_staleness_chart.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/canvas.h"
#include "report/histogram.h"
#include "report/number.h"
#include "report/states_chart.h"
#include "report/text.h"

namespace motley::report {
namespace {

constexpr double chart_width = 344;
constexpr double plot_height = 56;

const Histogram& delays_in(const Row& row, State state) { return row.states.staleness[static_cast<std::size_t>(state)]; }

std::string summary(const Histogram& delays) {
  if (delays_seen(delays) == 0) return "nothing applied";
  return fmt::format("{} applied, {}", show_fixed(total(delays), 0), delays_text(delays));
}

/// Below `top`; gives where it ends.
double draw_state(Canvas& canvas, State state, const Histogram& delays, std::size_t bars, double top) {
  canvas.text({6, top + 12}, state_name(state), "ink");
  canvas.text({chart_width - 6, top + 12}, summary(delays), "small end");
  if (delays_seen(delays) == 0) return top + 24;
  const Box plot{6, top + 34, chart_width - 12, plot_height};
  draw_histogram(canvas, delays, plot, bars, state_class(state));
  return plot.bottom() + 28;
}

}  // namespace

std::string state_staleness_chart(const Row& row, std::size_t index) {
  std::size_t seen = 0;
  for (const State state : every_state) seen = std::max(seen, delays_seen(delays_in(row, state)));
  Canvas canvas;
  canvas.strategy(index, "", [&] {
    canvas.polyline({{6, 14}, {28, 14}}, "mean");
    canvas.text({36, 18}, shorten(printable(row.strategy), 34), "strong", row.strategy);
  });
  double top = 32;
  std::string reported;
  for (const State state : every_state) {
    top = draw_state(canvas, state, delays_in(row, state), bars_for(seen), top);
    reported += fmt::format("{}{}: {}", reported.empty() ? "" : "; ", state_name(state), summary(delays_in(row, state)));
  }
  const Drawing drawing{.id = fmt::format("state-staleness-{}", index),
                        .title = fmt::format("{}: staleness of contributions by state", row.strategy),
                        .description = fmt::format("Versions late. {}.", reported),
                        .width = chart_width,
                        .height = top};
  return inline_svg(drawing, canvas);
}

}  // namespace motley::report
