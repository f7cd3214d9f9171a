// Counts become shares, shares become bars.
#include "report/staleness_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "report/axes.h"
#include "report/canvas.h"
#include "report/number.h"
#include "report/text.h"

namespace motley::report {
namespace {

constexpr double chart_width = 344;
constexpr double plot_height = 92;
constexpr std::size_t fewest_bars = 5;
constexpr std::size_t most_bars = 24;

/// Largest delay that occurred, plus one; 0 when nothing was applied.
std::size_t delays_seen(const std::vector<std::uint64_t>& histogram) {
  for (std::size_t n = histogram.size(); n > 0; --n)
    if (histogram[n - 1] > 0) return n;
  return 0;
}

double total(const std::vector<std::uint64_t>& histogram) {
  return std::accumulate(histogram.begin(), histogram.end(), 0.0, [](double sum, std::uint64_t n) { return sum + static_cast<double>(n); });
}

double mean_delay(const std::vector<std::uint64_t>& histogram) {
  double sum = 0;
  for (std::size_t k = 0; k < histogram.size(); ++k) sum += static_cast<double>(k) * static_cast<double>(histogram[k]);
  return sum / total(histogram);
}

/// Shares per bar; what lies beyond the last bar is gathered in it.
std::vector<double> shares(const std::vector<std::uint64_t>& histogram, std::size_t bars) {
  std::vector<double> found(bars);
  const double all = total(histogram);
  for (std::size_t k = 0; k < histogram.size(); ++k) found[std::min(k, bars - 1)] += static_cast<double>(histogram[k]) / all;
  return found;
}

void draw_bars(Canvas& canvas, const Row& row, Box plot, std::size_t bars) {
  const std::vector<double> share = shares(row.staleness, bars);
  const auto tallest = std::max_element(share.begin(), share.end());
  const double pitch = plot.width / static_cast<double>(bars);
  const bool gathers = delays_seen(row.staleness) > bars;
  const std::size_t label_every = bars <= 13 ? 1 : bars <= 26 ? 2 : 5;
  for (std::size_t k = 0; k < bars; ++k) {
    const double height = plot.height * share[k] / *tallest;
    const double left = plot.x + pitch * static_cast<double>(k);
    const std::string delay = fmt::format("{}{}", k, gathers && k + 1 == bars ? "+" : "");
    const Box bar{left + 1, plot.bottom() - height, pitch - 2, height};
    if (share[k] > 0) canvas.rect(bar, "bar", fmt::format("{} late: {}", delay, show_percent(share[k])), 1.5);
    if (&share[k] == &*tallest) canvas.text({left + pitch / 2, bar.y - 5}, show_percent(share[k], 0), "small middle");
    if (k % label_every == 0) canvas.text({left + pitch / 2, plot.bottom() + 15}, delay, "small middle");
  }
  canvas.line({plot.x, plot.bottom()}, {plot.right(), plot.bottom()}, "axis");
}

std::string summary(const Row& row) {
  return fmt::format("mean {}, most {}", show_fixed(mean_delay(row.staleness), 2), delays_seen(row.staleness) - 1);
}

}  // namespace

std::size_t staleness_bars(const Comparison& comparison) {
  std::size_t seen = 0;
  for (const Row& row : comparison.rows) seen = std::max(seen, delays_seen(row.staleness));
  return std::clamp(seen, fewest_bars, most_bars);
}

std::string staleness_chart(const Row& row, std::size_t index, std::size_t bars) {
  check(bars >= 1, "a histogram has at least one bar");
  const bool empty = delays_seen(row.staleness) == 0;
  const Box plot{6, 48, chart_width - 12, plot_height};
  Canvas canvas;
  canvas.strategy(index, "", [&] {
    canvas.polyline({{6, 14}, {28, 14}}, "mean");
    canvas.text({36, 18}, shorten(printable(row.strategy), 22), "strong", row.strategy);
    if (empty) return nothing_to_show(canvas, plot, "No contribution was applied.");
    canvas.text({plot.right(), 18}, summary(row), "small end");
    draw_bars(canvas, row, plot, bars);
  });
  const Drawing drawing{.id = fmt::format("staleness-{}", index),
                        .title = fmt::format("{}: staleness of contributions", row.strategy),
                        .description = empty ? "Nothing was applied." : fmt::format("Versions late: {}.", summary(row)),
                        .width = chart_width,
                        .height = plot.bottom() + 22};
  return inline_svg(drawing, canvas);
}

}  // namespace motley::report
