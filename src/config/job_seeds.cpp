// Parses a count or a range.
#include "config/job_seeds.h"

#include <fmt/format.h>

#include <charconv>
#include <numeric>
#include <optional>
#include <string_view>

namespace motley::config {
namespace {

constexpr std::uint64_t most_seeds = 10'000;

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t n = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return n;
}

std::vector<std::uint64_t> from(std::uint64_t first, std::uint64_t count) {
  std::vector<std::uint64_t> seeds(count);
  std::iota(seeds.begin(), seeds.end(), first);
  return seeds;
}

}  // namespace

Result<std::vector<std::uint64_t>> read_seeds(const std::string& text) {
  const Error refused = bad_input(fmt::format(
      "--seeds: found \"{}\", expected a count such as 5 (seeds 0 to 4) or a range such as 10..12, at most {} seeds", text, most_seeds));
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) {
    const auto count = whole_number(text);
    if (!count || *count == 0 || *count > most_seeds) return refused;
    return from(0, *count);
  }
  const auto first = whole_number(std::string_view(text).substr(0, dots));
  const auto last = whole_number(std::string_view(text).substr(dots + 2));
  if (!first || !last || *last < *first || *last - *first >= most_seeds) return refused;
  return from(*first, *last - *first + 1);
}

}  // namespace motley::config
