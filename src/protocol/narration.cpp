#include "protocol/narration.h"

#include <algorithm>

#include "base/match.h"

namespace motley::protocol {
namespace {

template <class Reason>
std::uint8_t number(Reason why) {
  return static_cast<std::uint8_t>(why);
}

trace::Event narrated(const policy::Note& note) {
  using trace::Kind;
  return std::visit(
      match{[](const policy::StateNow& n) {
              return trace::Event{.kind = Kind::state,
                                  .first = number(n.state),
                                  .last = n.gap,
                                  .value = static_cast<double>(n.threshold),
                                  .second = static_cast<double>(n.stragglers)};
            },
            [](const policy::Straggles& n) {
              return trace::Event{
                  .kind = Kind::straggles, .why = number(n.why), .worker = n.worker, .first = n.now ? 1U : 0U, .value = n.times};
            },
            [](const policy::InGroup& n) {
              return trace::Event{.kind = Kind::grouped, .worker = n.worker, .first = n.group, .last = n.groups};
            }},
      note);
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
              return Event{.kind = Kind::contributed,
                           .worker = a.worker,
                           .step = a.step,
                           .version = a.base,
                           .first = a.samples,
                           .value = a.loss,
                           .second = seconds(a.pull)};
            },
            [](const Returned&) -> Told { return std::nullopt; },
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
              return Event{.kind = Kind::released,
                           .why = number(a.why),
                           .worker = a.worker,
                           .step = a.step,
                           .version = a.version,
                           .value = static_cast<double>(a.bits.push),
                           .second = static_cast<double>(a.bits.pull)};
            },
            [](const Held& a) -> Told { return Event{.kind = Kind::held, .why = number(a.why), .worker = a.worker, .first = a.gap}; },
            [](const Dropped& a) -> Told { return Event{.kind = Kind::dropped, .why = number(a.why), .worker = a.worker, .step = a.step}; },
            [](const Rested& a) -> Told { return Event{.kind = Kind::rested, .worker = a.worker}; },
            [](const Cancelled& a) -> Told {
              return Event{.kind = Kind::cancelled, .why = number(a.why), .worker = a.worker, .step = a.step};
            },
            [](const Discarded& a) -> Told {
              return Event{.kind = Kind::discarded, .why = number(a.why), .worker = a.worker, .step = a.step};
            },
            [](const Noted& a) -> Told { return narrated(a.note); }, [](const WakeAt&) -> Told { return std::nullopt; },
            [](const Evaluate&) -> Told { return std::nullopt; }, [](const Checkpoint&) -> Told { return std::nullopt; },
            [](const Finished&) -> Told { return std::nullopt; }, [](const ServerStuck&) -> Told { return std::nullopt; }},
      action);
}

namespace {

/// One event of `kind` for each range of the lease.
void tell_ranges(trace::Kind kind, WorkerId worker, Step step, const Lease& lease, std::vector<trace::Event>& out) {
  for (const Range& range : lease.ranges)
    out.push_back({.kind = kind, .epoch = range.epoch, .worker = worker, .step = step, .first = range.first, .last = range.last});
}

}  // namespace

std::vector<trace::Event> narrated(const Returned& returned) {
  std::vector<trace::Event> events;
  tell_ranges(trace::Kind::returned, returned.worker, returned.step, returned.lease, events);
  return events;
}

std::vector<trace::Event> narrated(const wire::Order& order) {
  std::vector<trace::Event> events{{.kind = trace::Kind::ordered,
                                    .worker = order.worker,
                                    .step = order.step,
                                    .version = order.version,
                                    .first = order.lease.size(),
                                    .last = order.local_steps}};
  tell_ranges(trace::Kind::leased, order.worker, order.step, order.lease, events);
  return events;
}

trace::Event narrated(const StageExpelled& expelled) {
  return {.kind = trace::Kind::left, .why = number(Gone::step_too_long), .worker = {expelled.stage}, .first = expelled.device};
}

std::vector<trace::Event> narrated(const LayOut& laid) {
  std::vector<trace::Event> events;
  for (std::uint32_t s = 0; s < laid.cut.size(); ++s) {
    const plan::Stage& stage = laid.cut[s];
    if (std::find(laid.joined.begin(), laid.joined.end(), s) != laid.joined.end())
      events.push_back({.kind = trace::Kind::joined, .worker = {s}, .version = {laid.from}, .first = stage.device});
    if (laid.why != Relaid::begins)
      events.push_back({.kind = trace::Kind::recut,
                        .why = static_cast<std::uint8_t>(laid.why),
                        .epoch = stage.device,
                        .worker = {s},
                        .version = {laid.from},
                        .first = stage.first,
                        .last = stage.last});
  }
  return events;
}

}  // namespace motley::protocol
