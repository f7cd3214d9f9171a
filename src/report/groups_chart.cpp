// Two plots under each other on one axis of time. Groups take the colours of lines; the first of these is left to baselines.
#include "report/groups_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "report/axes.h"
#include "report/canvas.h"
#include "report/lanes.h"
#include "report/number.h"
#include "report/scale.h"
#include "report/text.h"

namespace motley::report {
namespace {

constexpr double chart_width = 530;
constexpr double rate_labels = 52;
constexpr double rate_height = 110;
constexpr double thinnest = 0.8;  // pixels

std::size_t colour_of(std::size_t group) { return group + 1; }

/// As many as were ever told of.
std::size_t count_of(const Groups& groups) {
  std::size_t count = groups.rates.size();
  for (const Groups::Worker& worker : groups.workers)
    for (const Groups::Stretch& stretch : worker.stretches) count = std::max(count, stretch.group + 1);
  return count;
}

Extent times_of(const Groups& groups) {
  std::vector<double> times{0};
  for (const Groups::Worker& worker : groups.workers)
    if (!worker.stretches.empty()) times.push_back(worker.stretches.back().end_s);
  for (const auto& rates : groups.rates)
    if (!rates.empty()) times.push_back(rates.back().time_s);
  return extent_of(times);
}

void draw_names(Canvas& canvas, std::size_t groups, double y) {
  double x = 2;
  for (std::size_t group = 0; group < groups && x < chart_width - 70; ++group, x += 76) {
    canvas.coloured(colour_of(group), [&] { canvas.rect({x, y - 9, 14, 10}, "bar"); });
    canvas.text({x + 19, y}, fmt::format("group {}", group), "small");
  }
}

void draw_worker(Canvas& canvas, const Groups::Worker& worker, Box row, const Scale& x) {
  lane_name(canvas, row, worker.name);
  for (const Groups::Stretch& stretch : worker.stretches)
    canvas.coloured(colour_of(stretch.group), [&] {
      canvas.rect({x(stretch.begin_s), row.y, std::max(x(stretch.end_s) - x(stretch.begin_s), thinnest), row.height}, "bar",
                  fmt::format("{} in group {} for {}", worker.name, stretch.group, show_seconds(stretch.end_s - stretch.begin_s)));
    });
}

void draw_rates(Canvas& canvas, const Groups& groups, Box plot, const Scale& x) {
  double most = 0;
  for (const auto& rates : groups.rates)
    for (const Groups::Rate& rate : rates) most = std::max(most, rate.rate);
  const Extent extent = rounded_out({0, most > 0 ? most : 1}, 4);
  const Scale y{extent, plot.bottom(), plot.y};
  axis_left(canvas, plot, y, ticks(extent, 4), plain_label, "rate of an update: learning rate times the weights in it");
  axis_below(canvas, plot, x, ticks(x.extent, 6), plain_label, "time (s)");
  for (std::size_t group = 0; group < groups.rates.size(); ++group) {
    std::vector<At> points;
    for (const Groups::Rate& rate : groups.rates[group]) points.push_back({x(rate.time_s), y(rate.rate)});
    canvas.coloured(colour_of(group), [&] { canvas.polyline(points, "mean", fmt::format("group {}", group)); });
  }
}

std::string summary(const Groups& groups) {
  std::size_t moves = 0;
  for (const Groups::Worker& worker : groups.workers) moves += std::max<std::size_t>(worker.stretches.size(), 1) - 1;
  return fmt::format("{} workers, up to {} groups, changes of group: {}", groups.workers.size(), count_of(groups), moves);
}

}  // namespace

bool has_groups(const Row& row) { return !row.groups.workers.empty(); }

std::string groups_chart(const Row& row, std::size_t index) {
  const Groups& groups = row.groups;
  std::vector<std::string> names;
  for (const Groups::Worker& worker : groups.workers) names.push_back(worker.name);
  Lanes rows = lanes(names, 52, chart_width - 12);
  // Both plots begin at one place: names and the labels of rates need room.
  const double left = std::max(rows.plot.x, rate_labels);
  rows.plot = {left, rows.plot.y, rows.plot.right() - left, rows.plot.height};
  const Scale x{times_of(groups), rows.plot.x, rows.plot.right()};
  Canvas canvas;
  canvas.strategy(index, "", [&] {
    canvas.polyline({{2, 14}, {24, 14}}, "mean");
    canvas.text({32, 18}, shorten(printable(row.strategy), 34), "strong", row.strategy);
  });
  draw_names(canvas, count_of(groups), 40);
  const std::string more = more_lanes(rows, names.size());
  axis_below(canvas, rows.plot, x, ticks(x.extent, 6), plain_label, more);
  for (std::size_t i = 0; i < rows.shown; ++i) draw_worker(canvas, groups.workers[i], rows.row(i), x);
  const Box plot{rows.plot.x, rows.plot.bottom() + (more.empty() ? 54 : 66), rows.plot.width, rate_height};
  draw_rates(canvas, groups, plot, x);
  canvas.text({2, plot.bottom() + 58}, summary(groups), "small");
  const Drawing drawing{.id = fmt::format("groups-{}", index),
                        .title = fmt::format("{}: groups and their rates over time", row.strategy),
                        .description = summary(groups) + ".",
                        .width = chart_width,
                        .height = plot.bottom() + 66};
  return inline_svg(drawing, canvas);
}

}  // namespace motley::report
