#include "trace/activity.h"

#include <algorithm>

#include "base/match.h"

namespace motley::trace {

std::span<const Activity::Ended> Activity::on_event(const Event& event) {
  ended_.clear();
  if (event.is<Finished>())
    for (auto& [worker, now] : lanes_) leave(worker, now, event.at);
  if (const auto* joined = event.as<Joined>())
    if (Now* const joining = lanes_.announce(joined->worker)) *joining = {.since = event.at};
  if (const auto worker = worker_of(event.data))
    if (Now* const now = lanes_.find(*worker)) update(*worker, *now, event);
  return ended_;
}

void Activity::update(WorkerId worker, Now& now, const Event& event) {
  const auto delivered = [&] {
    ++now.delivered;
    now.computed = std::max(now.computed, now.delivered);
  };
  std::visit(match{[&](const Left&) { leave(worker, now, event.at); }, [&](const Released&) { ++now.released; },
                   [&](const ComputeBegan& step) { now.computing = now.computing || now.cancelled != step.step; },
                   [&](const ComputeEnded& step) { compute_ended(worker, now, step, event.at); }, [&](const Contributed&) { delivered(); },
                   [&](const Dropped&) { delivered(); }, [&](const Cancelled& step) { cancelled(now, step.step); },
                   [&](const PartBegan&) { now.computing = true; }, [&](const PartEnded&) { now.computing = false; },
                   Ignored<Joined, Finished, Ordered, Leased, Applied, Counted, Held, Idled, Evaluated, FaultInjected, Returned, Discarded,
                           StateEntered, Straggles, Grouped, Committed, Repartitioned>{}},
             event.data);
  settle(worker, now, event.at);
}

/// A cancelled step may still end where the cancellation has not arrived. Stalls become one stretch at the beginning of the step.
void Activity::compute_ended(WorkerId worker, Now& now, const ComputeEnded& step, Instant at) {
  if (now.cancelled == step.step) return;
  const Duration stalled = std::min(step.stalled, at - now.since);
  if (stalled > Duration{0} && now.member && now.phase == Phase::compute) {
    ended_.push_back({worker, {now.since, now.since + stalled, Phase::receive}});
    now.since += stalled;
  }
  now.computing = false;
  ++now.computed;
}

void Activity::cancelled(Now& now, Step step) {
  now.cancelled = step;
  const bool sending = now.computed > now.delivered && !now.computing;
  if (sending)
    ++now.delivered;
  else
    --now.released;
  now.computing = false;
}

/// Computing hides concurrent transfers; otherwise the contribution being sent comes before the parameters being received.
void Activity::settle(WorkerId worker, Now& now, Instant at) {
  Phase next = Phase::wait;
  if (now.computing)
    next = Phase::compute;
  else if (now.computed > now.delivered)
    next = Phase::send;
  else if (now.released > now.computed)
    next = Phase::receive;
  if (next != now.phase) change_phase(worker, now, next, at);
}

void Activity::change_phase(WorkerId worker, Now& now, Phase next, Instant at) {
  if (!now.member) return;
  ended_.push_back({worker, {now.since, at, now.phase}});
  now.phase = next;
  now.since = at;
}

void Activity::leave(WorkerId worker, Now& now, Instant at) {
  change_phase(worker, now, Phase::wait, at);
  now.member = false;
}

}  // namespace motley::trace
