// Numbers as people read them: few digits, a unit, commas between thousands. What is not finite reads "–".
// One spelling for terminal, Markdown, page and charts, so that a figure can be searched for across them.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace motley::report {

inline constexpr std::string_view no_number = "–";

/// 1234.5 with 1 decimal: "1,234.5".
std::string show_fixed(double value, int decimals);
/// Three digits: 0.042 -> "0.042 s", 61.234 -> "61.2 s", 1234.5 -> "1,234 s".
std::string show_seconds(double seconds);
/// The digits of show_seconds() without the unit.
std::string show_seconds_bare(double seconds);
/// A share of one: 0.864 -> "86.4 %".
std::string show_percent(double share, int decimals = 1);
/// Mean and deviation of a share: "87.1 ± 0.2 %"; a deviation that is 0 or not finite is left out.
std::string show_percent(double mean, double deviation, int decimals);
/// Powers of 1000: 1.24e9 -> "1.24 GB".
std::string show_bytes(double bytes);
/// 2.2361 -> "2.24x".
std::string show_times(std::optional<double> factor);

}  // namespace motley::report
