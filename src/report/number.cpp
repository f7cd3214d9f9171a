// Rounding first, commas after: the digits shown decide, not the value behind them.
#include "report/number.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace motley::report {
namespace {

/// Decimals that leave about three digits. The bounds are those at which rounding adds a digit.
int decimals_for_three_digits(double value) {
  const double size = std::abs(value);
  if (size >= 99.95) return 0;
  if (size >= 9.995) return 1;
  if (size >= 0.9995 || size == 0) return 2;
  return 3;
}

std::string with_commas(std::string digits) {
  const std::size_t point = std::min(digits.find('.'), digits.size());
  const std::size_t first = digits.starts_with('-') ? 1 : 0;
  for (std::size_t at = point; at > first + 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

}  // namespace

std::string show_fixed(double value, int decimals) {
  if (!std::isfinite(value)) return std::string(no_number);
  std::string digits = fmt::format("{:.{}f}", value, decimals);
  if (digits.starts_with('-') && digits.find_first_not_of("-0.") == std::string::npos) digits.erase(0, 1);
  return with_commas(std::move(digits));
}

std::string show_seconds_bare(double seconds) { return show_fixed(seconds, decimals_for_three_digits(seconds)); }

std::string show_seconds(double seconds) {
  if (!std::isfinite(seconds)) return std::string(no_number);
  return show_seconds_bare(seconds) + " s";
}

std::string show_percent(double share, int decimals) {
  if (!std::isfinite(share)) return std::string(no_number);
  return show_fixed(share * 100, decimals) + " %";
}

std::string show_percent(double mean, double deviation, int decimals) {
  if (!std::isfinite(mean) || !std::isfinite(deviation) || deviation <= 0) return show_percent(mean, decimals);
  return fmt::format("{} ± {} %", show_fixed(mean * 100, decimals), show_fixed(deviation * 100, decimals));
}

std::string show_bytes(double bytes) {
  if (!std::isfinite(bytes)) return std::string(no_number);
  constexpr std::array units{"B", "kB", "MB", "GB", "TB", "PB"};
  std::size_t unit = 0;
  // 999.5 would round to 1000 of the smaller unit.
  for (; unit + 1 < units.size() && std::abs(bytes) >= 999.5; ++unit) bytes /= 1000;
  return fmt::format("{} {}", show_fixed(bytes, unit == 0 ? 0 : decimals_for_three_digits(bytes)), units[unit]);
}

std::string show_times(std::optional<double> factor) {
  if (!factor || !std::isfinite(*factor)) return std::string(no_number);
  return show_fixed(*factor, 2) + "x";
}

}  // namespace motley::report
