#include "protocol/narration.h"

#include "base/match.h"

namespace motley::protocol {
namespace {

template <class Reason>
std::uint8_t number(Reason why) {
  return static_cast<std::uint8_t>(why);
}

}  // namespace

std::optional<trace::Event> narrated(const ChiefAction& action) {
  using trace::Event;
  using trace::Kind;
  using Told = std::optional<Event>;
  return std::visit(
      match{[](const Send&) -> Told { return std::nullopt; }, [](const Joined&) -> Told { return std::nullopt; },
            [](const Left& a) -> Told { return Event{.kind = Kind::left, .why = number(a.why), .worker = a.worker}; },
            [](const Completed& a) -> Told {
              return Event{.kind = Kind::contributed, .worker = a.worker, .step = a.step, .version = a.base, .first = a.samples, .value = a.loss};
            },
            [](const Counted& a) -> Told {
              return Event{.kind = Kind::counted,
                           .worker = a.worker,
                           .step = a.step,
                           .version = a.version,
                           .first = a.samples,
                           .last = a.staleness,
                           .value = a.weight};
            },
            [](const Released& a) -> Told {
              return Event{.kind = Kind::released, .why = number(a.why), .worker = a.worker, .step = a.step, .version = a.version};
            },
            [](const Held& a) -> Told { return Event{.kind = Kind::held, .why = number(a.why), .worker = a.worker, .first = a.gap}; },
            [](const Dropped& a) -> Told { return Event{.kind = Kind::dropped, .why = number(a.why), .worker = a.worker, .step = a.step}; },
            [](const Rested& a) -> Told { return Event{.kind = Kind::rested, .worker = a.worker}; },
            [](const Evaluate&) -> Told { return std::nullopt; }, [](const Checkpoint&) -> Told { return std::nullopt; },
            [](const Finished&) -> Told { return std::nullopt; }},
      action);
}

std::vector<trace::Event> narrated(const wire::Order& order) {
  std::vector<trace::Event> events{{.kind = trace::Kind::ordered,
                                    .worker = order.worker,
                                    .step = order.step,
                                    .version = order.version,
                                    .first = order.lease.size(),
                                    .last = order.local_steps}};
  for (const Range& range : order.lease.ranges)
    events.push_back({.kind = trace::Kind::leased,
                      .epoch = range.epoch,
                      .worker = order.worker,
                      .step = order.step,
                      .first = range.first,
                      .last = range.last});
  return events;
}

}  // namespace motley::protocol
