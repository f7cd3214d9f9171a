#include "trace/reading.h"

#include <cmath>
#include <set>

#include "trace/sinks.h"

namespace motley::trace {
namespace {

/// Times and numbers, their sums and their differences stay far from the ends of their types.
constexpr Instant latest = at_seconds(100.0 * 365 * 24 * 3600);
constexpr double largest = 1e100;  // a float ends at 3e38

bool usable(double value) { return !std::isfinite(value) || std::abs(value) <= largest; }

/// What a run may have told.
bool possible(const Event& event) { return event.at >= Instant{} && event.at <= latest && usable(event.value) && usable(event.second); }

}  // namespace

std::vector<Event> read_events(std::span<const std::byte> bytes) {
  std::vector<Event> events;
  events.reserve(bytes.size() / record_bytes);
  for (; bytes.size() >= record_bytes; bytes = bytes.subspan(record_bytes)) {
    const auto event = read_record(bytes.first<record_bytes>());
    if (!event || !possible(*event)) break;
    events.push_back(*event);
  }
  return events;
}

std::vector<Event> events_until(std::span<const Event> events, Version version, std::uint8_t why_left) {
  std::vector<Event> kept;
  std::vector<Event> late;
  std::set<WorkerId> here;
  bool reached = version == Version{};
  for (const Event& event : events) {
    if (reached) {
      if (event.kind == Kind::evaluated && event.version <= version) late.push_back(event);
      continue;
    }
    kept.push_back(event);
    if (event.kind == Kind::joined) here.insert(event.worker);
    if (event.kind == Kind::left) here.erase(event.worker);
    reached = event.kind == Kind::applied && event.version == version;
  }
  if (!reached) return {};
  const Instant end = kept.empty() ? Instant{} : kept.back().at;
  kept.insert(kept.end(), late.begin(), late.end());
  for (const WorkerId worker : here) kept.push_back({.at = end, .kind = Kind::left, .why = why_left, .worker = worker});
  return kept;
}

}  // namespace motley::trace
