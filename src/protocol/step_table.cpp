#include "protocol/step_table.h"

#include <algorithm>

#include "base/check.h"
#include "policy/credible_compute.h"

namespace motley::protocol {

PendingStep* StepTable::find(WorkerId worker, Step step) {
  const auto owner = workers_.find(worker);
  if (owner == workers_.end()) return nullptr;
  auto& pending = owner->second.pending;
  const auto found = std::find_if(pending.begin(), pending.end(), [&](const PendingStep& p) { return p.step == step; });
  return found == pending.end() ? nullptr : &*found;
}

const PendingStep* StepTable::on_contributed(Instant now, const wire::Contributed& reported) {
  PendingStep* step = find(reported.worker, reported.step);
  if (step == nullptr || step->reported) return nullptr;
  step->reported = reported;
  step->previous_reported_at = std::exchange(workers_.at(reported.worker).last_reported_at, now);
  step->reported_at = now;
  return step->complete(servers_) ? step : nullptr;
}

const PendingStep* StepTable::on_gathered(const wire::Gathered& reported) {
  PendingStep* step = find(reported.worker, reported.step);
  if (step == nullptr || !step->gathered.insert(reported.server).second) return nullptr;
  step->finite = step->finite && reported.finite;
  return step->complete(servers_) ? step : nullptr;
}

PendingStep StepTable::remove(Instant now, WorkerId worker, Step step) {
  PendingStep* found = find(worker, step);
  check(found != nullptr, "a step that ends was pending");
  PendingStep removed = std::move(*found);
  Worker& owner = workers_.at(worker);
  owner.pending.erase(owner.pending.begin() + (found - owner.pending.data()));
  owner.last_completed_at = now;
  return removed;
}

StepTable::PendingSteps StepTable::leave(WorkerId worker) {
  PendingSteps pending = cancel(worker);
  workers_.erase(worker);
  return pending;
}

StepTable::CompleteStep StepTable::take_complete(WorkerId worker, Step step) {
  auto found = complete_.extract(Key{worker, step});
  check(!found.empty(), "a strategy applies or drops a complete step once");
  return std::move(found.mapped());
}

const PendingStep* StepTable::oldest(WorkerId worker) const {
  const auto found = workers_.find(worker);
  return found == workers_.end() || found->second.pending.empty() ? nullptr : &found->second.pending.front();
}

Step StepTable::first_missing(WorkerId worker, Step next) const {
  const PendingStep* pending = oldest(worker);
  Step first = pending == nullptr ? next : std::min(next, pending->step);
  if (const auto complete = complete_.lower_bound({worker, Step{}}); complete != complete_.end() && complete->first.first == worker)
    first = std::min(first, complete->first.second);
  return first;
}

/// The compute time that the worker reported, raised to the least that the chief's own observations allow.
Duration StepTable::credible_compute(Instant now, WorkerId worker, const PendingStep& step) const {
  const Duration pull = std::clamp(step.reported->report.pull, Duration{0}, std::max(step.reported_at - step.ordered_at, Duration{0}));
  const Instant began = std::max(step.previous_reported_at, step.ordered_at + pull);
  return policy::credible_compute(step.reported->report.compute, step.reported_at - began,
                                  now - std::max(workers_.at(worker).last_completed_at, step.ordered_at));
}

policy::Contribution StepTable::contribution(Instant now, WorkerId worker, const PendingStep& step) const {
  const auto ordered = static_cast<std::uint32_t>(step.lease.size());
  StepReport report = step.reported->report;
  // The worker's own count is used only when its time was limited.
  report.samples = step.time_limited ? std::clamp(report.samples, 1U, ordered) : ordered;
  report.local_steps = step.local_steps;
  report.compute = credible_compute(now, worker, step);
  return {.worker = worker,
          .step = step.reported->step,
          .base = step.reported->base,
          .report = report,
          .time_limited = step.spare || report.samples < ordered,
          .push = now - step.reported_at,
          .bits = step.bits,
          .arrived = now};
}

void StepTable::driver_paused(Duration time) {
  for (auto& [id, worker] : workers_) {
    worker.last_reported_at += time;
    worker.last_completed_at += time;
    for (PendingStep& step : worker.pending) {
      step.ordered_at += time;
      step.reported_at += time;
      step.previous_reported_at += time;
    }
  }
}

}  // namespace motley::protocol
