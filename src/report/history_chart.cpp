// Plots under each other on one axis of time: a line per worker for its batch, its local steps (where there are any) and its bits, then how
// far apart the workers finish.
#include "report/history_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "report/axes.h"
#include "report/canvas.h"
#include "report/number.h"
#include "report/scale.h"
#include "report/text.h"

namespace motley::report {
namespace {

constexpr double chart_width = 530;
constexpr double label_width = 44;
constexpr double plot_height = 96;
constexpr double gap = 44;
constexpr std::size_t most_workers = 16;  // more lines than this nobody can follow
constexpr std::size_t name_width = 10;

double last_time(const Row& row) {
  double last = 0;
  for (const WorkerHistory& history : row.histories)
    for (const WorkerHistory::Share& share : history.shares) last = std::max(last, share.time_s);
  return last > 0 ? last : 1;
}

/// As a staircase: a value holds until the next one.
template <class Value>
std::vector<At> stairs(const std::vector<WorkerHistory::Share>& shares, const Scale& x, const Scale& y, Value value) {
  std::vector<At> points;
  for (const WorkerHistory::Share& share : shares) {
    const At at{x(share.time_s), y(value(share))};
    if (!points.empty() && points.back().y != at.y) points.push_back({at.x, points.back().y});
    points.push_back(at);
  }
  return points;
}

/// One number of each share, from 0 up.
template <class Value>
void draw_shares(Canvas& canvas, const Row& row, Box plot, const Scale& x, const char* name, Value value) {
  double most = 1;
  for (const WorkerHistory& history : row.histories)
    for (const WorkerHistory::Share& share : history.shares) most = std::max(most, value(share));
  const Extent extent = rounded_out({0, most}, 4);
  const Scale y{extent, plot.bottom(), plot.y};
  axis_left(canvas, plot, y, ticks(extent, 4), plain_label, name);
  axis_below(canvas, plot, x, ticks(x.extent, 6), plain_label, "");
  for (std::size_t w = 0; w < std::min(row.histories.size(), most_workers); ++w)
    canvas.coloured(w, [&] { canvas.polyline(stairs(row.histories[w].shares, x, y, value), "mean", row.histories[w].worker); });
}

bool takes_local_steps(const Row& row) {
  for (const WorkerHistory& history : row.histories)
    for (const WorkerHistory::Share& share : history.shares)
      if (share.local_steps > 1) return true;
  return false;
}

/// Bits double from line to line, so their logarithm runs up.
void draw_bits(Canvas& canvas, const Row& row, Box plot, const Scale& x) {
  const Scale y{{1, 5}, plot.bottom(), plot.y};
  const Ticks at_bits{.at = {1, 2, 3, 4, 5}, .decimals = 0};
  axis_left(
      canvas, plot, y, at_bits, [](const Ticks&, double power) { return fmt::format("{:.0f}", std::exp2(power)); },
      "bits per value: push bold, pull thin");
  axis_below(canvas, plot, x, ticks(x.extent, 6), plain_label, "");
  const auto power = [](double bits) { return bits > 0 ? std::log2(bits) : 5.0; };
  for (std::size_t w = 0; w < std::min(row.histories.size(), most_workers); ++w)
    canvas.coloured(w, [&] {
      const auto& shares = row.histories[w].shares;
      canvas.polyline(stairs(shares, x, y, [&](const WorkerHistory::Share& s) { return power(s.push_bits); }), "mean",
                      row.histories[w].worker);
      canvas.polyline(stairs(shares, x, y, [&](const WorkerHistory::Share& s) { return power(s.pull_bits); }), "seed",
                      row.histories[w].worker);
    });
}

void draw_finishes(Canvas& canvas, const Row& row, Box plot, const Scale& x) {
  std::vector<double> seen;
  for (const Finish& finish : row.finishes) seen.push_back(finish.spread_s * 1e3);
  std::sort(seen.begin(), seen.end());
  // One surprise must not press all the rest onto the axis.
  const double most = seen.empty() ? 1 : std::max(seen[seen.size() * 98 / 100] * 1.2, 1e-3);
  const Extent extent = rounded_out({0, most}, 4);
  const Scale y{extent, plot.bottom(), plot.y};
  axis_left(canvas, plot, y, ticks(extent, 4), plain_label, "first to last finish of an update (ms)");
  axis_below(canvas, plot, x, ticks(x.extent, 6), plain_label, "time (s)");
  std::vector<At> points;
  for (const Finish& finish : row.finishes) points.push_back({x(finish.time_s), y(std::min(finish.spread_s * 1e3, extent.high))});
  canvas.polyline(points, "mean");
}

void draw_names(Canvas& canvas, const Row& row, double y) {
  double x = label_width;
  for (std::size_t w = 0; w < std::min(row.histories.size(), most_workers); ++w) {
    const std::string name = shorten(printable(row.histories[w].worker), name_width);
    const double room = 28 + 7 * static_cast<double>(width(name));
    if (x + room > chart_width) break;
    canvas.coloured(w, [&] { canvas.polyline({{x, y - 4}, {x + 14, y - 4}}, "mean"); });
    canvas.text({x + 19, y}, name, "small");
    x += room;
  }
}

/// Two lines: it must fit under the plots.
std::array<std::string, 2> summary(const Row& row) {
  const double share = row.samples > 0 ? row.returned_samples / row.samples : 0;
  return {fmt::format("{} of the samples went to others", show_percent(share, 1)),
          fmt::format("{} of the time in exposed communication, {} of transfers hidden under computing",
                      show_percent(row.exposed_comm_share, 1), show_percent(std::max(row.overlap_ratio, 0.0), 1))};
}

}  // namespace

bool has_history(const Row& row) {
  if (row.returned_samples > 0) return true;
  for (const WorkerHistory& history : row.histories)
    for (const WorkerHistory::Share& share : history.shares)
      if (share.samples != history.shares.front().samples || share.local_steps > 1 || share.push_bits != history.shares.front().push_bits)
        return true;
  return false;
}

std::string history_chart(const Row& row, std::size_t index) {
  const Box first{label_width, 72, chart_width - label_width - 6, plot_height};
  const auto below = [&](int n) { return Box{first.x, first.y + n * (plot_height + gap), first.width, first.height}; };
  const Scale x{{0, last_time(row)}, first.x, first.right()};
  Canvas canvas;
  canvas.strategy(index, "", [&] {
    canvas.polyline({{6, 14}, {28, 14}}, "mean");
    canvas.text({36, 18}, shorten(printable(row.strategy), 24), "strong", row.strategy);
  });
  draw_names(canvas, row, 38);
  int plots = 0;
  draw_shares(canvas, row, below(plots++), x, "samples per step", [](const WorkerHistory::Share& s) { return s.samples / s.local_steps; });
  if (takes_local_steps(row))
    draw_shares(canvas, row, below(plots++), x, "local steps per round", [](const WorkerHistory::Share& s) { return s.local_steps; });
  draw_bits(canvas, row, below(plots++), x);
  canvas.strategy(index, "", [&] { draw_finishes(canvas, row, below(plots), x); });
  const double end = below(plots).bottom() + 44;
  const auto [to_others, exposed] = summary(row);
  canvas.text({first.x, end + 12}, to_others, "small");
  canvas.text({first.x, end + 28}, exposed, "small");
  const Drawing drawing{.id = fmt::format("history-{}", index),
                        .title = fmt::format("{}: batches, bits and finishes over time", row.strategy),
                        .description = fmt::format("{}; {}.", to_others, exposed),
                        .width = chart_width,
                        .height = end + 36};
  return inline_svg(drawing, canvas);
}

}  // namespace motley::report
