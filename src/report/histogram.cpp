// Counts become shares, shares become bars.
#include "report/histogram.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "report/number.h"

namespace motley::report {
namespace {

constexpr std::size_t fewest_bars = 5;
constexpr std::size_t most_bars = 24;

double mean_delay(const Histogram& histogram) {
  double sum = 0;
  for (std::size_t k = 0; k < histogram.size(); ++k) sum += static_cast<double>(k) * static_cast<double>(histogram[k]);
  return sum / total(histogram);
}

/// Shares per bar; what lies beyond the last bar is gathered in it.
std::vector<double> shares(const Histogram& histogram, std::size_t bars) {
  std::vector<double> found(bars);
  const double all = total(histogram);
  for (std::size_t k = 0; k < histogram.size(); ++k) found[std::min(k, bars - 1)] += static_cast<double>(histogram[k]) / all;
  return found;
}

}  // namespace

std::size_t delays_seen(const Histogram& histogram) {
  for (std::size_t n = histogram.size(); n > 0; --n)
    if (histogram[n - 1] > 0) return n;
  return 0;
}

std::size_t bars_for(std::size_t delays) { return std::clamp(delays, fewest_bars, most_bars); }

double total(const Histogram& histogram) {
  return std::accumulate(histogram.begin(), histogram.end(), 0.0, [](double sum, std::uint64_t n) { return sum + static_cast<double>(n); });
}

std::string delays_text(const Histogram& histogram) {
  return fmt::format("mean {}, most {}", show_fixed(mean_delay(histogram), 2), delays_seen(histogram) - 1);
}

void draw_histogram(Canvas& canvas, const Histogram& histogram, Box plot, std::size_t bars, std::string_view css) {
  check(bars >= 1, "a histogram has at least one bar");
  const std::vector<double> share = shares(histogram, bars);
  const auto tallest = std::max_element(share.begin(), share.end());
  const double pitch = plot.width / static_cast<double>(bars);
  const bool gathers = delays_seen(histogram) > bars;
  const std::size_t label_every = bars <= 13 ? 1 : bars <= 26 ? 2 : 5;
  for (std::size_t k = 0; k < bars; ++k) {
    const double height = plot.height * share[k] / *tallest;
    const double left = plot.x + pitch * static_cast<double>(k);
    const std::string delay = fmt::format("{}{}", k, gathers && k + 1 == bars ? "+" : "");
    const Box bar{left + 1, plot.bottom() - height, pitch - 2, height};
    if (share[k] > 0) canvas.rect(bar, css, fmt::format("{} late: {}", delay, show_percent(share[k])), 1.5);
    if (&share[k] == &*tallest) canvas.text({left + pitch / 2, bar.y - 5}, show_percent(share[k], 0), "small middle");
    if (k % label_every == 0) canvas.text({left + pitch / 2, plot.bottom() + 15}, delay, "small middle");
  }
  canvas.line({plot.x, plot.bottom()}, {plot.right(), plot.bottom()}, "axis");
}

}  // namespace motley::report
