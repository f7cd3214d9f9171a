#include "trace/event.h"

#include <array>

namespace motley::trace {

std::string_view name_of(Kind kind) {
  static constexpr std::array<std::string_view, 26> names{
      "joined",    "left",  "ordered",   "leased",  "released",   "compute_began", "compute_ended", "contributed", "applied",
      "counted",   "held",  "dropped",   "rested",  "evaluated",  "fault",         "finished",      "returned",    "cancelled",
      "discarded", "state", "straggles", "grouped", "part_began", "part_ended",    "committed",     "recut"};
  return names.at(static_cast<std::size_t>(kind));
}

}  // namespace motley::trace
