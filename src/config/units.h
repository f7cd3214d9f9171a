// Sizes and rates as people write them: "64KiB", "8GiB", "134.6MB/s", "1Gbit/s". Decimal and binary prefixes; bits only in rates.
#pragma once
#include <optional>
#include <string_view>

namespace motley::config {

/// Bytes in "64KiB", "1.5MB" or "4096". None when the text is not a size. May be negative, huge or not finite: the caller checks the range.
std::optional<double> parse_bytes(std::string_view text);

/// Bytes per second in "134.6MB/s", "1Gbit/s" (125,000,000) or "1e6". None when the text is not a rate.
std::optional<double> parse_rate(std::string_view text);

}  // namespace motley::config
