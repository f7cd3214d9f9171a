#include "protocol/trace_events.h"

#include <algorithm>

#include "base/match.h"

namespace motley::protocol {
namespace {

template <class Reason>
std::uint8_t number(Reason why) {
  return static_cast<std::uint8_t>(why);
}

trace::Event to_trace_events(const policy::Note& note) {
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

std::optional<trace::Event> to_trace_events(const ChiefAction& action) {
  using trace::Event;
  using trace::Kind;
  using MaybeEvent = std::optional<Event>;
  return std::visit(
      match{[](const Send&) -> MaybeEvent { return std::nullopt; }, [](const Joined&) -> MaybeEvent { return std::nullopt; },
            [](const Left& a) -> MaybeEvent { return Event{.kind = Kind::left, .why = number(a.why), .worker = a.worker}; },
            [](const Completed& a) -> MaybeEvent {
              return Event{.kind = Kind::contributed,
                           .worker = a.worker,
                           .step = a.step,
                           .version = a.base,
                           .first = a.samples,
                           .value = a.loss,
                           .second = seconds(a.pull)};
            },
            [](const Returned&) -> MaybeEvent { return std::nullopt; },
            [](const Counted& a) -> MaybeEvent {
              return Event{.kind = Kind::counted,
                           .worker = a.worker,
                           .step = a.step,
                           .version = a.version,
                           .first = a.samples,
                           .last = a.staleness,
                           .value = a.weight};
            },
            [](const Released& a) -> MaybeEvent {
              return Event{.kind = Kind::released,
                           .why = number(a.why),
                           .worker = a.worker,
                           .step = a.step,
                           .version = a.version,
                           .value = static_cast<double>(a.bits.push),
                           .second = static_cast<double>(a.bits.pull)};
            },
            [](const Held& a) -> MaybeEvent { return Event{.kind = Kind::held, .why = number(a.why), .worker = a.worker, .first = a.gap}; },
            [](const Dropped& a) -> MaybeEvent {
              return Event{.kind = Kind::dropped, .why = number(a.why), .worker = a.worker, .step = a.step};
            },
            [](const Idled& a) -> MaybeEvent { return Event{.kind = Kind::idled, .worker = a.worker}; },
            [](const Cancelled& a) -> MaybeEvent {
              return Event{.kind = Kind::cancelled, .why = number(a.why), .worker = a.worker, .step = a.step};
            },
            [](const Discarded& a) -> MaybeEvent {
              return Event{.kind = Kind::discarded, .why = number(a.why), .worker = a.worker, .step = a.step};
            },
            [](const Noted& a) -> MaybeEvent { return to_trace_events(a.note); }, [](const WakeAt&) -> MaybeEvent { return std::nullopt; },
            [](const Evaluate&) -> MaybeEvent { return std::nullopt; }, [](const Checkpoint&) -> MaybeEvent { return std::nullopt; },
            [](const Finished&) -> MaybeEvent { return std::nullopt; }, [](const ServerStuck&) -> MaybeEvent { return std::nullopt; }},
      action);
}

namespace {

/// One event of `kind` for each range of the lease.
void tell_ranges(trace::Kind kind, WorkerId worker, Step step, const Lease& lease, std::vector<trace::Event>& out) {
  for (const Range& range : lease.ranges)
    out.push_back({.kind = kind, .epoch = range.epoch, .worker = worker, .step = step, .first = range.first, .last = range.last});
}

}  // namespace

std::vector<trace::Event> to_trace_events(const Returned& returned) {
  std::vector<trace::Event> events;
  tell_ranges(trace::Kind::returned, returned.worker, returned.step, returned.lease, events);
  return events;
}

std::vector<trace::Event> to_trace_events(const wire::Order& order) {
  std::vector<trace::Event> events{{.kind = trace::Kind::ordered,
                                    .worker = order.worker,
                                    .step = order.step,
                                    .version = order.version,
                                    .first = order.lease.size(),
                                    .last = order.local_steps}};
  tell_ranges(trace::Kind::leased, order.worker, order.step, order.lease, events);
  return events;
}

trace::Event to_trace_events(const StageExpelled& expelled) {
  return {.kind = trace::Kind::left, .why = number(LeaveReason::step_too_long), .worker = {expelled.stage}, .first = expelled.device};
}

std::vector<trace::Event> to_trace_events(const AssignStages& assignment) {
  std::vector<trace::Event> events;
  for (std::uint32_t s = 0; s < assignment.cut.size(); ++s) {
    const pipeline::Stage& stage = assignment.cut[s];
    if (std::find(assignment.joined.begin(), assignment.joined.end(), s) != assignment.joined.end())
      events.push_back({.kind = trace::Kind::joined, .worker = {s}, .version = {assignment.from}, .first = stage.device});
    if (assignment.why != AssignReason::begins)
      events.push_back({.kind = trace::Kind::repartition,
                        .why = static_cast<std::uint8_t>(assignment.why),
                        .epoch = stage.device,
                        .worker = {s},
                        .version = {assignment.from},
                        .first = stage.first,
                        .last = stage.last});
  }
  return events;
}

}  // namespace motley::protocol
