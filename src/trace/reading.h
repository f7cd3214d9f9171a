// Reads trace files: their events as far as the file is whole, and what a run recorded up to the checkpoint from which it resumes.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"
#include "trace/event.h"

namespace motley::trace {

/// Reads up to the first record that is incomplete, of an unknown kind, or has a time or value that no run has. Ids are not checked: sinks
/// accept any event. Fails on a file of another version; a file that ends within its header has no events.
Result<std::vector<Event>> read_events(std::span<const std::byte> bytes);

struct RecordedUntil {
  std::vector<Event> events;
  bool whole = true;  // every update up to that version is among them
};
/// Events up to the update that makes `version`, or as far as there are any, and evaluations of earlier versions. A member of that time
/// leaves at the end, for reason `why_left`.
[[nodiscard]] RecordedUntil events_until(std::span<const Event> events, Version version, std::uint8_t why_left);

}  // namespace motley::trace
