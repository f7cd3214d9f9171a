#include "protocol/trace_events.h"

#include <algorithm>

#include "base/match.h"

namespace motley::protocol {
namespace {

using MaybeEvent = std::optional<trace::EventData>;

template <class Reason>
std::uint8_t number(Reason why) {
  return static_cast<std::uint8_t>(why);
}

trace::EventData event_of(const policy::Note& note) {
  return std::visit(match{[](const policy::StateNow& n) -> trace::EventData {
                            return trace::StateEntered{
                                .state = number(n.state), .gap = n.gap, .threshold = n.threshold, .stragglers = n.stragglers};
                          },
                          [](const policy::Straggles& n) -> trace::EventData {
                            return trace::Straggles{.worker = n.worker, .why = number(n.why), .now = n.now, .medians = n.times};
                          },
                          [](const policy::InGroup& n) -> trace::EventData {
                            return trace::Grouped{.worker = n.worker, .group = n.group, .groups = n.groups};
                          }},
                    note);
}

MaybeEvent event_of(const Completed& a) {
  return trace::Contributed{.worker = a.worker, .step = a.step, .base = a.base, .samples = a.samples, .loss = a.loss, .pull = a.pull};
}

MaybeEvent event_of(const Counted& a) {
  return trace::Counted{
      .worker = a.worker, .step = a.step, .version = a.version, .samples = a.samples, .staleness = a.staleness, .weight = a.weight};
}

MaybeEvent event_of(const Released& a) {
  return trace::Released{
      .worker = a.worker, .step = a.step, .version = a.version, .why = number(a.why), .push_bits = a.bits.push, .pull_bits = a.bits.pull};
}

/// One event of kind T for each range of the lease.
template <class T>
void add_ranges(WorkerId worker, Step step, const Lease& lease, std::vector<trace::EventData>& out) {
  for (const Range& range : lease.ranges)
    out.push_back(T{.worker = worker, .step = step, .epoch = range.epoch, .first = range.first, .last = range.last});
}

}  // namespace

std::optional<trace::EventData> to_trace_event(const ChiefAction& action) {
  return std::visit(
      match{[](const Left& a) -> MaybeEvent { return trace::Left{.worker = a.worker, .why = number(a.why)}; },
            [](const Completed& a) { return event_of(a); }, [](const Counted& a) { return event_of(a); },
            [](const Released& a) { return event_of(a); },
            [](const Held& a) -> MaybeEvent { return trace::Held{.worker = a.worker, .why = number(a.why), .gap = a.gap}; },
            [](const Dropped& a) -> MaybeEvent { return trace::Dropped{.worker = a.worker, .step = a.step, .why = number(a.why)}; },
            [](const Idled& a) -> MaybeEvent { return trace::Idled{.worker = a.worker}; },
            [](const Cancelled& a) -> MaybeEvent { return trace::Cancelled{.worker = a.worker, .step = a.step, .why = number(a.why)}; },
            [](const Discarded& a) -> MaybeEvent { return trace::Discarded{.worker = a.worker, .step = a.step, .why = number(a.why)}; },
            [](const Noted& a) -> MaybeEvent { return event_of(a.note); }, [](const Send&) -> MaybeEvent { return std::nullopt; },
            [](const Joined&) -> MaybeEvent { return std::nullopt; }, [](const Returned&) -> MaybeEvent { return std::nullopt; },
            [](const WakeAt&) -> MaybeEvent { return std::nullopt; }, [](const Evaluate&) -> MaybeEvent { return std::nullopt; },
            [](const Checkpoint&) -> MaybeEvent { return std::nullopt; }, [](const Finished&) -> MaybeEvent { return std::nullopt; },
            [](const ServerStuck&) -> MaybeEvent { return std::nullopt; }},
      action);
}

std::vector<trace::EventData> to_trace_events(const Returned& returned) {
  std::vector<trace::EventData> events;
  add_ranges<trace::Returned>(returned.worker, returned.step, returned.lease, events);
  return events;
}

std::vector<trace::EventData> to_trace_events(const wire::Order& order) {
  std::vector<trace::EventData> events{trace::Ordered{.worker = order.worker,
                                                      .step = order.step,
                                                      .version = order.version,
                                                      .samples = order.lease.size(),
                                                      .local_steps = order.local_steps}};
  add_ranges<trace::Leased>(order.worker, order.step, order.lease, events);
  return events;
}

trace::EventData to_trace_event(const StageExpelled& expelled) {
  return trace::Left{.worker = {expelled.stage}, .why = number(LeaveReason::step_too_long), .node = expelled.device};
}

std::vector<trace::EventData> to_trace_events(const AssignStages& assignment) {
  std::vector<trace::EventData> events;
  for (std::uint32_t s = 0; s < assignment.cut.size(); ++s) {
    const pipeline::Stage& stage = assignment.cut[s];
    if (std::find(assignment.joined.begin(), assignment.joined.end(), s) != assignment.joined.end())
      events.push_back(trace::Joined{.worker = {s}, .node = stage.device, .version = {assignment.from}});
    if (assignment.why != AssignReason::begins)
      events.push_back(trace::Repartitioned{.stage = {s},
                                            .why = number(assignment.why),
                                            .version = {assignment.from},
                                            .first_block = stage.first,
                                            .last_block = stage.last,
                                            .node = stage.device});
  }
  return events;
}

}  // namespace motley::protocol
