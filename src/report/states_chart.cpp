// Stretches become blocks, never too thin to be seen; marks that an eye could not tell apart are left out, the counts below are of all.
#include "report/states_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "report/axes.h"
#include "report/canvas.h"
#include "report/lanes.h"
#include "report/number.h"
#include "report/scale.h"
#include "report/text.h"

namespace motley::report {
namespace {

constexpr double chart_width = 530;
constexpr double state_timeline_top = 30;
constexpr double state_timeline_height = 18;
constexpr double thinnest = 0.8;   // pixels
constexpr double mark_reach = 3;   // pixels from its middle
constexpr double marks_apart = 2;  // pixels

/// Told by shape too, not by colour alone: the further apart the workers are, the higher the block.
double height_of(State state) { return state == State::in_step ? 0.35 : state == State::lagging ? 0.7 : 1.0; }

void draw_state(Canvas& canvas, Box box, State state, std::string_view tip) {
  const double height = box.height * height_of(state);
  canvas.rect({box.x, box.bottom() - height, box.width, height}, state_class(state), tip);
}

Box block(double begin_s, double end_s, Box row, const Scale& x) {
  return {x(begin_s), row.y, std::max(x(end_s) - x(begin_s), thinnest), row.height};
}

void draw_mark(Canvas& canvas, At at, bool cancelled, std::string_view tip) {
  if (!cancelled) return canvas.circle(at, mark_reach, "discarded", tip);
  const auto corner = [&](double right, double down) { return At{at.x + mark_reach * right, at.y + mark_reach * down}; };
  canvas.polyline({corner(-1, -1), corner(1, 1), at, corner(1, -1), corner(-1, 1)}, "cancelled", tip);
}

void draw_whole(Canvas& canvas, const States& states, Box row, const Scale& x) {
  lane_name(canvas, row, "all");
  for (const States::Stretch& stretch : states.whole)
    draw_state(canvas, block(stretch.begin_s, stretch.end_s, row, x), stretch.state,
               fmt::format("{} for {}", state_name(stretch.state), show_seconds(stretch.end_s - stretch.begin_s)));
}

void draw_worker(Canvas& canvas, const States::Worker& worker, Box row, const Scale& x) {
  lane_name(canvas, row, worker.name);
  canvas.rect(row, "lane", fmt::format("{}: straggled for {} in all", worker.name, show_seconds(worker.straggled_s)));
  for (const States::Straggling& stretch : worker.straggling)
    canvas.rect(block(stretch.begin_s, stretch.end_s, row, x), "straggles",
                fmt::format("{} straggles for {}: {}", worker.name, show_seconds(stretch.end_s - stretch.begin_s), stretch.why));
  double drawn_until = row.x - marks_apart;
  for (const States::Mark& mark : worker.marks) {
    const At at{x(mark.time_s), row.y + row.height / 2};
    if (at.x - drawn_until < marks_apart) continue;
    drawn_until = at.x;
    draw_mark(canvas, at, mark.cancelled,
              fmt::format("{} at {}, {}: {}", worker.name, show_seconds(mark.time_s),
                          mark.cancelled ? "its step is cancelled" : "its contribution is discarded", mark.why));
  }
}

std::string summary(const States& states) {
  double whole = 0;
  for (const double lasted : states.lasted_s) whole += lasted;
  const auto share = [&](State state) { return show_percent(whole > 0 ? states.lasted_s[static_cast<std::size_t>(state)] / whole : 0); };
  std::string text;
  for (const State state : every_state) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", state_name(state), share(state));
  return fmt::format("{}; cancelled {}, discarded {}", text, show_fixed(states.cancelled, 0), show_fixed(states.discarded, 0));
}

}  // namespace

bool has_states(const Row& row) { return !row.states.whole.empty(); }

std::string_view state_name(State state) {
  switch (state) {
    case State::in_step: return "in step";
    case State::lagging: return "lagging";
    case State::over_stale: return "over-stale";
  }
  check(false, "a state is one of three");
  return {};
}

std::string_view state_class(State state) { return state == State::in_step ? "in-step" : state_name(state); }

std::string states_chart(const Row& row, std::size_t index) {
  const States& states = row.states;
  check(has_states(row), "a chart of states has some to show");
  std::vector<std::string> names;
  for (const States::Worker& worker : states.workers) names.push_back(worker.name);
  const Lanes rows = lanes(names, state_timeline_top + state_timeline_height + 8, chart_width - 12);
  const Scale x{extent_of({0, states.whole.back().end_s}), rows.plot.x, rows.plot.right()};
  Canvas canvas;
  canvas.strategy(index, "", [&] {
    canvas.polyline({{2, 14}, {24, 14}}, "mean");
    canvas.text({32, 18}, shorten(printable(row.strategy), 34), "strong", row.strategy);
  });
  const std::string more = more_lanes(rows, names.size());
  axis_below(canvas, rows.plot, x, ticks(x.extent, 6), plain_label, more.empty() ? "time (s)" : more + ", time (s)");
  draw_whole(canvas, states, {rows.plot.x, state_timeline_top, rows.plot.width, state_timeline_height}, x);
  for (std::size_t i = 0; i < rows.shown; ++i) draw_worker(canvas, states.workers[i], rows.row(i), x);
  canvas.text({2, rows.plot.bottom() + 58}, summary(states), "small");
  const Drawing drawing{.id = fmt::format("states-{}", index),
                        .title = fmt::format("{}: who straggled when", row.strategy),
                        .description = summary(states) + ".",
                        .width = chart_width,
                        .height = rows.plot.bottom() + 66};
  return inline_svg(drawing, canvas);
}

std::string states_legend() {
  Canvas canvas;
  double x = 0;
  const auto entry = [&](std::string_view name, auto draw) {
    draw(Box{x, 3, 26, 14});
    canvas.text({x + 33, 14}, name, "ink");
    x += 110;
  };
  for (const State state : every_state) entry(state_name(state), [&](Box box) { draw_state(canvas, box, state, {}); });
  entry("straggles", [&](Box box) { canvas.rect(box, "straggles"); });
  entry("cancelled", [&](Box box) { draw_mark(canvas, {box.x + 13, 10}, true, {}); });
  entry("discarded", [&](Box box) { draw_mark(canvas, {box.x + 13, 10}, false, {}); });
  return inline_svg({.id = "states-legend",
                     .title = "States and marks",
                     .description = "Looks of the three states, of straggling, of cancelled steps and of discarded contributions.",
                     .width = x,
                     .height = 20},
                    canvas);
}

}  // namespace motley::report
