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

RecordedUntil events_until(std::span<const Event> events, Version version, std::uint8_t why_left) {
  RecordedUntil recorded;
  std::vector<Event> late;
  std::set<WorkerId> here;
  Version newest;
  for (const Event& event : events) {
    if (newest == version) {
      if (event.kind == Kind::evaluated && event.version <= version) late.push_back(event);
      continue;
    }
    if (event.kind == Kind::applied && event.version > version) break;  // told after something was lost
    recorded.events.push_back(event);
    if (event.kind == Kind::joined) here.insert(event.worker);
    if (event.kind == Kind::left) here.erase(event.worker);
    if (event.kind != Kind::applied) continue;
    if (event.version > newest.next()) recorded.whole = false;
    newest = event.version;
  }
  if (newest != version) recorded.whole = false;
  const Instant end = recorded.events.empty() ? Instant{} : recorded.events.back().at;
  recorded.events.insert(recorded.events.end(), late.begin(), late.end());
  for (const WorkerId worker : here) recorded.events.push_back({.at = end, .kind = Kind::left, .why = why_left, .worker = worker});
  return recorded;
}

}  // namespace motley::trace
