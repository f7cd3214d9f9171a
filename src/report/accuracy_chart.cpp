// First the view is chosen (which times, which accuracies), then the painter draws into it. One painter serves page and README.
#include "report/accuracy_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/axes.h"
#include "report/canvas.h"
#include "report/headline.h"
#include "report/number.h"
#include "report/ranking.h"
#include "report/scale.h"
#include "report/text.h"

namespace motley::report {
namespace {

constexpr double chart_width = 1080;
constexpr double least_plot_height = 360;
constexpr double label_width = 56;  // left of the plot
constexpr double legend_width = 250;
constexpr double legend_line = 22;
constexpr double nearest_points = 0.6;         // pixels; closer points are left out, they would only weigh
constexpr double after_last_arrival = 1.5;     // the view goes on this many times the last arrival
constexpr double steep_share = 0.12;           // of the evaluations: the shared beginning below the view
constexpr std::size_t legend_name_width = 18;  // columns
constexpr std::size_t heading_width = 128;     // columns

bool drawable(const Point& point) { return std::isfinite(point.time_s) && std::isfinite(point.accuracy); }

struct View {
  Extent time{};
  Extent accuracy{};
  double last_s{};  // where the longest run ends, perhaps outside the view
  bool empty = true;
};

template <class Visit>
void each_mean_point(const Comparison& comparison, Visit visit) {
  for (const Row& row : comparison.rows)
    for (const Point& point : row.mean_curve)
      if (drawable(point)) visit(point);
}

double last_arrival(const Comparison& comparison) {
  double last = 0;
  for (const Row& row : comparison.rows) last = std::max(last, reached(row.time_to_target_s).value_or(0));
  return last;
}

/// The accuracies worth room: from where most evaluations lie up to the best seed, with the target inside.
Extent accuracy_extent(const Comparison& comparison, double end_s) {
  std::vector<double> seen;
  each_mean_point(comparison, [&](const Point& point) {
    if (point.time_s <= end_s) seen.push_back(point.accuracy);
  });
  std::sort(seen.begin(), seen.end());
  std::vector<double> ends;
  if (!seen.empty()) ends = {seen[static_cast<std::size_t>(steep_share * static_cast<double>(seen.size()))], seen.back()};
  for (const Row& row : comparison.rows)
    for (const auto& curve : row.curves)
      for (const Point& point : curve)
        if (drawable(point) && point.time_s <= end_s && !seen.empty()) ends.push_back(std::max(point.accuracy, ends[0]));
  if (comparison.target_accuracy) ends.push_back(*comparison.target_accuracy);
  return rounded_out(extent_of(ends), 6);
}

View view_of(const Comparison& comparison) {
  View view;
  each_mean_point(comparison, [&](const Point& point) {
    view.last_s = std::max(view.last_s, point.time_s);
    view.empty = false;
  });
  const double arrival = last_arrival(comparison);
  const double end = arrival > 0 ? std::min(view.last_s, arrival * after_last_arrival) : view.last_s;
  view.time = {0, end > 0 ? end : 1};
  view.accuracy = accuracy_extent(comparison, view.time.high);
  return view;
}

/// The curve as places; broken where a value is missing. Ends with the first point beyond the view, so that the line leaves it.
std::vector<std::vector<At>> pieces(const std::vector<Point>& curve, const Scale& x, const Scale& y) {
  std::vector<std::vector<At>> found(1);
  for (std::size_t i = 0; i < curve.size(); ++i) {
    if (!drawable(curve[i])) {
      found.emplace_back();
      continue;
    }
    const At at{x(curve[i].time_s), y(curve[i].accuracy)};
    const bool last = i + 1 == curve.size();
    if (last || found.back().empty() || std::abs(at.x - found.back().back().x) >= nearest_points) found.back().push_back(at);
    if (curve[i].time_s > x.extent.high) break;
  }
  return found;
}

class Painter {
 public:
  Painter(const Comparison& comparison, At corner) : comparison_(comparison), view_(view_of(comparison)) {
    const double legend_height = legend_line * static_cast<double>(comparison.rows.size() + 1);
    plot_ = {corner.x + label_width, corner.y + 28, chart_width - label_width - legend_width - 24,
             std::max(least_plot_height, legend_height)};
    x_ = {view_.time, plot_.x, plot_.right()};
    y_ = {view_.accuracy, plot_.bottom(), plot_.y};
  }

  void paint(Canvas& canvas, std::string_view clip_id) const {
    if (view_.empty)
      return nothing_to_show(canvas, {plot_.x, plot_.y, chart_width - 2 * label_width, plot_.height}, "No evaluation was recorded.");
    axis_left(canvas, plot_, y_, ticks(view_.accuracy, 6), percent_label, "accuracy");
    axis_below(canvas, plot_, x_, ticks(view_.time, 10), plain_label, time_caption());
    canvas.clipped(plot_, clip_id, [&] { curves(canvas); });
    target(canvas);
    legend(canvas);
  }

  [[nodiscard]] double height() const { return plot_.bottom() + 48; }

  /// For the reader's pointer: the plot's box and what its edges mean.
  [[nodiscard]] std::string plot_attribute() const {
    return fmt::format(" data-plot=\"{} {} {} {} {} {} {}\"", coordinate(plot_.x), coordinate(plot_.y), coordinate(plot_.width),
                       coordinate(plot_.height), view_.time.high, view_.accuracy.low, view_.accuracy.high);
  }

 private:
  std::string time_caption() const {
    if (view_.last_s <= view_.time.high * 1.001) return "time (s)";
    return fmt::format("time (s); the longest run goes on to {}", show_seconds(view_.last_s));
  }

  /// Seeds under all means, the winner on top.
  void curves(Canvas& canvas) const {
    std::vector<std::size_t> order = ranking(comparison_);
    std::reverse(order.begin(), order.end());
    for (const std::size_t i : order)
      canvas.strategy(i, "fades", [&] {
        for (const auto& curve : comparison_.rows[i].curves)
          for (const auto& piece : pieces(curve, x_, y_)) canvas.polyline(piece, "seed");
      });
    for (const std::size_t i : order)
      canvas.strategy(i, fastest(comparison_) == i ? "fades best" : "fades", [&] { mean(canvas, comparison_.rows[i]); });
  }

  void mean(Canvas& canvas, const Row& row) const {
    for (const auto& piece : pieces(row.mean_curve, x_, y_)) {
      if (piece.size() == 1) canvas.circle(piece[0], 3.5, "dot", row.strategy);
      canvas.polyline(piece, "mean", row.strategy);
    }
  }

  void target(Canvas& canvas) const {
    if (!comparison_.target_accuracy || !std::isfinite(*comparison_.target_accuracy)) return;
    const double y = y_(*comparison_.target_accuracy);
    canvas.line({plot_.x, y}, {plot_.right(), y}, "target");
    const bool below = y < plot_.y + 16;  // above the line the axis has its name
    canvas.text({plot_.x + 6, below ? y + 14 : y - 6}, "target " + target_text(comparison_), "ink small");
    for (std::size_t i = 0; i < comparison_.rows.size(); ++i)
      if (const auto time = reached(comparison_.rows[i].time_to_target_s))
        canvas.strategy(i, "fades", [&] {
          canvas.circle({x_(*time), y}, 5, "dot", fmt::format("{}: {}", comparison_.rows[i].strategy, show_seconds(*time)));
        });
  }

  void legend(Canvas& canvas) const {
    const double left = plot_.right() + 24;
    const double right = left + legend_width - 8;
    double y = plot_.y + 4;
    const bool has_target = comparison_.target_accuracy.has_value();
    canvas.text({left, y}, has_target ? "fastest first" : "highest first", "small");
    if (has_target) canvas.text({right, y}, "to target", "small end");
    for (const std::size_t i : ranking(comparison_)) {
      const Row& row = comparison_.rows[i];
      const bool best = fastest(comparison_) == i;
      const auto time = reached(row.time_to_target_s);
      y += legend_line;
      canvas.strategy(i, best ? "fades best" : "fades", [&] {
        canvas.polyline({{left, y - 4}, {left + 24, y - 4}}, "mean");
        canvas.text({left + 34, y}, shorten(printable(row.strategy), legend_name_width), best ? "strong" : "ink", row.strategy);
        if (has_target) canvas.text({right, y}, time ? show_seconds(*time) : "not reached", best ? "strong end" : "end");
      });
    }
  }

  const Comparison& comparison_;
  View view_;
  Box plot_;
  Scale x_;
  Scale y_;
};

Drawing drawing(const Comparison& comparison, std::string_view id, const Painter& painter) {
  return {.id = std::string(id),
          .title = fmt::format("{}: accuracy over time", comparison.job),
          .description = fmt::format("One line per strategy, mean over {} seeds. {}", comparison.seeds.size(), headline(comparison).result),
          .width = chart_width,
          .height = painter.height()};
}

}  // namespace

std::string accuracy_chart(const Comparison& comparison) {
  const Painter painter(comparison, {0, 0});
  Canvas canvas;
  painter.paint(canvas, "accuracy-clip");
  Drawing whole = drawing(comparison, "accuracy", painter);
  whole.attributes = painter.plot_attribute();
  return inline_svg(whole, canvas);
}

std::string accuracy_svg(const Comparison& comparison) {
  constexpr double side = 16;
  constexpr double heading_height = 46;
  const Painter painter(comparison, {side, heading_height});
  Canvas canvas;
  canvas.text({side + 8, 36}, shorten(printable(headline(comparison).result), heading_width), "heading");
  painter.paint(canvas, "accuracy-svg-clip");
  Drawing whole = drawing(comparison, "accuracy-svg", painter);
  whole.width += 2 * side;
  return standalone_svg(whole, canvas);
}

}  // namespace motley::report
