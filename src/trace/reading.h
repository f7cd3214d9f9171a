// A trace file read again: its events as far as they are whole, and what a run that goes on from a checkpoint had told by then.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "trace/event.h"

namespace motley::trace {

/// Up to the first record that is none: torn, of an unknown kind, or with a time or value that no run has. What is said of whom is not
/// looked at: sinks take any event.
[[nodiscard]] std::vector<Event> read_events(std::span<const std::byte> bytes);

/// What a run has told up to the version that it goes on from.
struct RecordedUntil {
  std::vector<Event> events;
  bool whole = true;  // every update up to that version is in it
};
/// Events up to the update that made `version`, or as far as there are any, and evaluations of what came before. Whoever was a member then
/// leaves at the end, for reason `why_left`.
[[nodiscard]] RecordedUntil events_until(std::span<const Event> events, Version version, std::uint8_t why_left);

}  // namespace motley::trace
