// number, optional spaces, optional prefix (k M G T, Ki Mi Gi Ti), unit (B; in rates B/s or bit/s).
#include "config/units.h"

#include <array>
#include <charconv>
#include <utility>

namespace motley::config {
namespace {

struct Quantity {
  double number{};
  std::string_view unit;
};

std::optional<Quantity> split_quantity(std::string_view text) {
  Quantity out;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), out.number);
  if (failure != std::errc{}) return std::nullopt;
  out.unit = text.substr(static_cast<std::size_t>(end - text.data()));
  while (out.unit.starts_with(' ')) out.unit.remove_prefix(1);
  return out;
}

/// The factor of `prefix`; none when it is no prefix.
std::optional<double> factor(std::string_view prefix) {
  constexpr std::array<std::pair<std::string_view, double>, 10> prefixes{{{"", 1},
                                                                          {"k", 1e3},
                                                                          {"K", 1e3},
                                                                          {"M", 1e6},
                                                                          {"G", 1e9},
                                                                          {"T", 1e12},
                                                                          {"Ki", 1024.0},
                                                                          {"Mi", 1048576.0},
                                                                          {"Gi", 1073741824.0},
                                                                          {"Ti", 1099511627776.0}}};
  for (const auto& [name, value] : prefixes)
    if (name == prefix) return value;
  return std::nullopt;
}

/// The value of `quantity` when its unit is a prefix followed by `unit`.
std::optional<double> in_unit(const Quantity& quantity, std::string_view unit) {
  if (!quantity.unit.ends_with(unit)) return std::nullopt;
  const auto scale = factor(quantity.unit.substr(0, quantity.unit.size() - unit.size()));
  if (!scale) return std::nullopt;
  return quantity.number * *scale;
}

}  // namespace

std::optional<double> parse_bytes(std::string_view text) {
  const auto quantity = split_quantity(text);
  if (!quantity) return std::nullopt;
  return quantity->unit.empty() ? quantity->number : in_unit(*quantity, "B");
}

std::optional<double> parse_rate(std::string_view text) {
  const auto quantity = split_quantity(text);
  if (!quantity) return std::nullopt;
  if (quantity->unit.empty()) return quantity->number;
  if (const auto bits = in_unit(*quantity, "bit/s")) return *bits / 8;
  return in_unit(*quantity, "B/s");
}

}  // namespace motley::config
