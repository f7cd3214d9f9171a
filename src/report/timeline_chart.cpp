// One lane per worker; spans are cut to the window and those too thin to see are left out.
#include "report/timeline_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "report/axes.h"
#include "report/canvas.h"
#include "report/lanes.h"
#include "report/number.h"
#include "report/scale.h"
#include "report/style.h"
#include "report/text.h"

namespace motley::report {
namespace {

constexpr double chart_width = 530;
constexpr double most_unlike = 6;  // windows that differ more get a scale each
constexpr double too_thin = 0.05;  // pixels

bool drawable(const Span& span) { return std::isfinite(span.begin_s) && std::isfinite(span.end_s) && span.end_s > span.begin_s; }

struct Window {
  double begin_s{};
  double end_s{};
};

std::optional<Window> window_of(const Row& row) {
  std::optional<Window> window;
  for (const Lane& lane : row.timeline)
    for (const Span& span : lane.spans) {
      if (!drawable(span)) continue;
      if (!window) window = Window{span.begin_s, span.end_s};
      *window = {std::min(window->begin_s, span.begin_s), std::max(window->end_s, span.end_s)};
    }
  return window;
}

void draw_span(Canvas& canvas, Box box, Phase phase, std::string_view tip) {
  if (phase != Phase::wait) return canvas.rect(box, phase_class(phase), tip);
  // Waiting is told by shape too, not by colour alone: a thin block with a line through it.
  canvas.rect({box.x, box.y + box.height * 0.2, box.width, box.height * 0.6}, "wait", tip);
  canvas.line({box.x, box.y + box.height / 2}, {box.right(), box.y + box.height / 2}, "wait-edge");
}

void draw_lane(Canvas& canvas, const Lane& lane, Box box, const Scale& x) {
  lane_name(canvas, box, lane.worker);
  for (const Span& span : lane.spans) {
    if (!drawable(span)) continue;
    const double from = std::clamp(x(span.begin_s), box.x, box.right());
    const double to = std::clamp(x(span.end_s), box.x, box.right());
    if (to - from < too_thin) continue;
    draw_span(canvas, {from, box.y, to - from, box.height}, span.phase,
              fmt::format("{}: {} {}", lane.worker, phase_name(span.phase), show_seconds(span.end_s - span.begin_s)));
  }
}

Drawing drawing(const Row& row, std::size_t index, double height) {
  return {.id = fmt::format("timeline-{}", index),
          .title = fmt::format("{}: what each worker does", row.strategy),
          .description = fmt::format("{} workers over {}; waiting takes {} of the run.", row.timeline.size(), show_seconds(window_s(row)),
                                     show_percent(row.wait_share)),
          .width = chart_width,
          .height = height};
}

std::string seconds_label(const Ticks& ticks, double value) { return ticks.label(value) + " s"; }

void heading(Canvas& canvas, const Row& row, std::size_t index) {
  canvas.strategy(index, "", [&] {
    canvas.polyline({{2, 14}, {24, 14}}, "mean");
    canvas.text({32, 18}, shorten(printable(row.strategy), 34), "strong", row.strategy);
    canvas.text({chart_width - 6, 18}, fmt::format("waits {} of the run", show_percent(row.wait_share)), "small end");
  });
}

}  // namespace

double window_s(const Row& row) {
  const auto window = window_of(row);
  return window ? window->end_s - window->begin_s : 0;
}

std::optional<double> common_window_s(const Comparison& comparison) {
  double shortest = 0;
  double longest = 0;
  for (const Row& row : comparison.rows) {
    const double window = window_s(row);
    if (window <= 0) continue;
    shortest = shortest == 0 ? window : std::min(shortest, window);
    longest = std::max(longest, window);
  }
  return longest > 0 && longest <= most_unlike * shortest ? std::optional{longest} : std::nullopt;
}

std::string timeline_chart(const Row& row, std::size_t index, std::optional<double> shown_s) {
  Canvas canvas;
  heading(canvas, row, index);
  const auto window = window_of(row);
  if (!window) {
    nothing_to_show(canvas, {2, 30, chart_width - 8, 60}, "No timeline was recorded.");
    return inline_svg(drawing(row, index, 100), canvas);
  }
  std::vector<std::string> names;
  for (const Lane& lane : row.timeline) names.push_back(lane.worker);
  const Lanes rows = lanes(names, 30, chart_width - 6);
  const Box plot = rows.plot;
  const double across = shown_s.value_or(window->end_s - window->begin_s);
  const Scale x{{window->begin_s, window->begin_s + across}, plot.x, plot.right()};
  const Scale from_zero{{0, across}, plot.x, plot.right()};
  const std::string more = more_lanes(rows, row.timeline.size());
  axis_below(canvas, plot, from_zero, ticks(from_zero.extent, 6), seconds_label, more);
  for (std::size_t i = 0; i < rows.shown; ++i) draw_lane(canvas, row.timeline[i], rows.row(i), x);
  return inline_svg(drawing(row, index, plot.bottom() + (more.empty() ? 24 : 42)), canvas);
}

std::string phase_legend() {
  Canvas canvas;
  double x = 0;
  for (const Phase phase : {Phase::compute, Phase::send, Phase::receive, Phase::wait}) {
    draw_span(canvas, {x, 3, 26, 14}, phase, {});
    canvas.text({x + 33, 14}, phase_name(phase), "ink");
    x += 110;
  }
  return inline_svg(
      {.id = "phases", .title = "Phases", .description = "Colours of compute, send, receive and wait.", .width = x, .height = 20}, canvas);
}

}  // namespace motley::report
