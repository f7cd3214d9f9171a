// One line per strategy: name, bar, whisker, seeds, figure.
#include "report/target_chart.h"

#include <fmt/format.h>

#include <algorithm>

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
constexpr double line_height = 34;
constexpr double bar_height = 20;
constexpr double value_width = 190;     // right of the plot, for the figure behind a full-length bar
constexpr double letter_width = 7.2;    // of the label's type, generous
constexpr std::size_t name_width = 28;  // columns

double name_room(const Comparison& comparison) {
  std::size_t longest = 6;
  for (const Row& row : comparison.rows) longest = std::max(longest, width(shorten(printable(row.strategy), name_width)));
  return letter_width * static_cast<double>(longest) + 18;
}

/// The latest time there is, of a mean or of a seed; 0 when there is none.
double latest_s(const Comparison& comparison) {
  double longest = 0;
  for (const Row& row : comparison.rows) longest = std::max({longest, reached(row.time_to_target_s).value_or(0), seed_spread(row).most_s});
  return longest;
}

std::string figure(const Row& row) {
  const auto time = reached(row.time_to_target_s);
  if (!time) return "not reached";
  if (!row.speedup_vs_bsp || row.strategy == "bsp") return show_seconds(*time);
  return fmt::format("{} ({} vs bsp)", show_seconds(*time), show_times(row.speedup_vs_bsp));
}

void whisker(Canvas& canvas, double from, double to, double middle, std::string_view css) {
  canvas.line({from, middle}, {to, middle}, css);
  for (const double edge : {from, to}) canvas.line({edge, middle - 6}, {edge, middle + 6}, css);
}

/// Returns where the drawing of this row ends, so that its figure can stand behind it.
double bar_and_seeds(Canvas& canvas, const Row& row, double middle, const Scale& x) {
  double end = x(0);
  if (const auto time = reached(row.time_to_target_s)) {
    end = x(*time);
    canvas.rect({x(0), middle - bar_height / 2, end - x(0), bar_height}, "bar", fmt::format("{}: {}", row.strategy, show_seconds(*time)),
                2);
  }
  const SeedSpread spread = seed_spread(row);
  if (spread.reached > 1)
    // The halo keeps the whisker readable on a bar of any colour.
    for (const std::string_view css : {"halo", "whisker"}) whisker(canvas, x(spread.least_s), x(spread.most_s), middle, css);
  for (std::size_t seed = 0; seed < row.time_to_target_per_seed.size(); ++seed)
    if (const auto time = reached(row.time_to_target_per_seed[seed]))
      canvas.circle({x(*time), middle}, 3, "one-seed", fmt::format("{}, run {}: {}", row.strategy, seed + 1, show_seconds(*time)));
  return spread.reached > 0 ? std::max(end, x(spread.most_s) + 4) : end;
}

}  // namespace

std::string target_chart(const Comparison& comparison) {
  const double names = name_room(comparison);
  const Box plot{names, 10, chart_width - names - value_width, line_height * std::max(1.0, static_cast<double>(comparison.rows.size()))};
  const double latest = latest_s(comparison);
  const Scale x{{0, latest > 0 ? latest : 1}, plot.x, plot.right()};
  const auto best = fastest(comparison);

  Canvas canvas;
  if (comparison.rows.empty())
    nothing_to_show(canvas, plot, "No strategy was compared.");
  else
    axis_below(canvas, plot, x, latest > 0 ? ticks(x.extent, 8) : Ticks{}, plain_label,
               fmt::format("time to {} (s)", target_text(comparison)));
  double middle = plot.y + line_height / 2;
  for (const std::size_t i : ranking(comparison)) {
    const Row& row = comparison.rows[i];
    canvas.strategy(i, best == i ? "fades best" : "fades", [&] {
      canvas.text({plot.x - 12, middle + 4}, shorten(printable(row.strategy), name_width), best == i ? "strong end" : "ink end",
                  row.strategy);
      const double end = bar_and_seeds(canvas, row, middle, x);
      canvas.text({end + 9, middle + 4}, figure(row), best == i ? "strong" : reached(row.time_to_target_s) ? "ink" : "");
    });
    middle += line_height;
  }
  const Drawing drawing{
      .id = "target",
      .title = fmt::format("Time to {} per strategy", target_text(comparison)),
      .description = "Horizontal bars, soonest first; whiskers reach from the soonest to the latest seed, dots are single seeds.",
      .width = chart_width,
      .height = plot.bottom() + 46};
  return inline_svg(drawing, canvas);
}

}  // namespace motley::report
