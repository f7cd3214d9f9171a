#include "trace/event.h"

#include <array>

namespace motley::trace {

std::optional<WorkerId> worker_of(const EventData& data) {
  return std::visit(
      [](const auto& event) -> std::optional<WorkerId> {
        if constexpr (requires { event.worker; })
          return event.worker;
        else if constexpr (requires { event.stage; })
          return event.stage;
        else
          return std::nullopt;
      },
      data);
}

std::string_view name_of(const EventData& data) {
  static constexpr std::array<std::string_view, std::variant_size_v<EventData>> names{
      "joined",    "left",  "ordered",   "leased",  "released",   "compute_began", "compute_ended", "contributed", "applied",
      "counted",   "held",  "dropped",   "idled",   "evaluated",  "fault",         "finished",      "returned",    "cancelled",
      "discarded", "state", "straggles", "grouped", "part_began", "part_ended",    "committed",     "repartition"};
  return names.at(data.index());
}

}  // namespace motley::trace
