#include "trace/reading.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/match.h"
#include "trace/fields.h"
#include "trace/record.h"

namespace motley::trace {
namespace {

/// Sums and differences of times and numbers within these bounds stay far from the limits of their types.
constexpr Instant latest = at_seconds(100.0 * 365 * 24 * 3600);
constexpr double largest = 1e100;  // a float ends at 3e38

/// Whether a run may have recorded this.
bool possible(const Event& event) {
  bool possible = event.at >= Instant{} && event.at <= latest;
  const auto check_field = match{
      [&](double value) { possible = possible && (!std::isfinite(value) || std::abs(value) <= largest); },
      [&](Duration value) { possible = possible && value <= latest.time_since_epoch() && value >= -latest.time_since_epoch(); },
      [](const auto&) {},
  };
  std::visit([&](const auto& data) { for_each_field(data, check_field); }, event.data);
  return possible;
}

}  // namespace

Result<std::vector<Event>> read_events(std::span<const std::byte> bytes) {
  const auto header = std::as_bytes(std::span(file_header));
  const std::size_t present = std::min(bytes.size(), header.size());
  if (!std::equal(header.begin(), header.begin() + static_cast<std::ptrdiff_t>(present), bytes.begin()))
    return bad_input("it does not begin with \"motley trace v2\": it is damaged, or an older version of motley has written it");
  bytes = bytes.subspan(present);
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
  std::set<WorkerId> members;
  Version newest;
  for (const Event& event : events) {
    if (newest == version) {
      if (const auto* evaluated = event.as<Evaluated>(); evaluated != nullptr && evaluated->version <= version) late.push_back(event);
      continue;
    }
    const auto* applied = event.as<Applied>();
    if (applied != nullptr && applied->version > version) break;  // an update before it was lost
    recorded.events.push_back(event);
    if (const auto* joined = event.as<Joined>()) members.insert(joined->worker);
    if (const auto* left = event.as<Left>()) members.erase(left->worker);
    if (applied == nullptr) continue;
    if (applied->version > newest.next()) recorded.whole = false;
    newest = applied->version;
  }
  if (newest != version) recorded.whole = false;
  const Instant end = recorded.events.empty() ? Instant{} : recorded.events.back().at;
  recorded.events.insert(recorded.events.end(), late.begin(), late.end());
  for (const WorkerId worker : members) recorded.events.push_back({end, Left{.worker = worker, .why = why_left}});
  return recorded;
}

}  // namespace motley::trace
