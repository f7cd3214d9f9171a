// Sizes in pixels; a letter's width is that of the charts' small type.
#include "report/lanes.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/text.h"

namespace motley::report {
namespace {

constexpr std::size_t most_lanes = 32;
constexpr std::size_t name_width = 14;  // columns
constexpr double letter_width = 6.6;

/// Lanes grow thinner as they grow more.
double lane_height(std::size_t lanes) { return lanes <= 8 ? 20 : lanes <= 16 ? 15 : 12; }

double name_room(const std::vector<std::string>& names) {
  std::size_t longest = 2;
  for (const std::string& name : names) longest = std::max(longest, std::min(width(printable(name)), name_width));
  return letter_width * static_cast<double>(longest) + 14;
}

}  // namespace

Lanes lanes(const std::vector<std::string>& names, double top, double across) {
  const std::size_t shown = std::min(names.size(), most_lanes);
  const double pitch = lane_height(shown);
  const double room = name_room(names);
  return {{room, top, across - room, pitch * static_cast<double>(shown)}, shown, pitch};
}

void lane_name(Canvas& canvas, Box row, std::string_view name) {
  canvas.text({row.x - 8, row.y + row.height / 2 + 4}, shorten(printable(name), name_width), "small end", name);
}

std::string more_lanes(const Lanes& lanes, std::size_t all) {
  return all > lanes.shown ? fmt::format("and {} more workers", all - lanes.shown) : "";
}

}  // namespace motley::report
