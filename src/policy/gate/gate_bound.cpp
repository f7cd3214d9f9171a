#include "policy/gate/gate_bound.h"

#include "base/check.h"

namespace motley::policy {

GateBound::GateBound(std::uint32_t lower, std::uint32_t upper) : lower_(lower), upper_(upper) {
  check(lower <= upper, "the lower bound is not above the upper");
}

void GateBound::joined(Instant now, std::span<const WorkerId> workers, Decisions& out) {
  for (const WorkerId worker : workers) {
    WorkerClock worker_clock;
    worker_clock.clock = at_clock_.empty() ? 0 : slowest_clock();  // a new worker is neither behind the others nor ahead of them
    worker_clock.last = now;
    worker_clocks_.emplace(worker, worker_clock);
    enlist(worker, worker_clock.clock);
    out.release.push_back({worker, Why::first_order});
  }
}

void GateBound::left(Instant, WorkerId worker, Decisions& out) {
  const auto found = worker_clocks_.find(worker);
  check(found != worker_clocks_.end(), "only a present worker can leave");
  const WorkerClock worker_clock = found->second;
  worker_clocks_.erase(found);
  if (!worker_clock.idle) delist(worker, worker_clock.clock);
  if (worker_clock.waiting) waiting_.erase({worker_clock.clock, worker});
  for (auto& [id, other] : worker_clocks_)
    if (other.idle) out.release.push_back({id, Why::work_returned});
  wake(out);
}

void GateBound::ordered(Instant, WorkerId worker, Duration) {
  WorkerClock& worker_clock = worker_clocks_.at(worker);
  if (!worker_clock.idle) return;
  worker_clock.idle = false;
  if (!at_clock_.empty()) worker_clock.clock = slowest_clock();
  enlist(worker, worker_clock.clock);
}

void GateBound::idled(Instant, WorkerId worker, Decisions& out) {
  WorkerClock& worker_clock = worker_clocks_.at(worker);
  if (worker_clock.idle) return;
  worker_clock.idle = true;
  delist(worker, worker_clock.clock);
  wake(out);
}

void GateBound::contributed(Instant now, const Contribution& contribution, Decisions& out) {
  out.apply.push_back({{contribution}});
  WorkerClock& worker_clock = worker_clocks_.at(contribution.worker);
  tick(contribution.worker, worker_clock, now);
  wake(out);
  go_or_wait(contribution.worker, worker_clock, out);
}

void GateBound::refused(Instant, WorkerId worker, Decisions& out) { out.release.push_back({worker, Why::work_returned}); }

std::uint64_t GateBound::slowest_clock() const { return at_clock_.begin()->first; }

void GateBound::tick(WorkerId worker, WorkerClock& worker_clock, Instant now) {
  delist(worker, worker_clock.clock);
  if (worker_clock.clock > 0) worker_clock.interval = now - worker_clock.last;
  worker_clock.last = now;
  ++worker_clock.clock;
  enlist(worker, worker_clock.clock);
}

void GateBound::go_or_wait(WorkerId worker, WorkerClock& worker_clock, Decisions& out) {
  const std::uint64_t gap = worker_clock.clock - slowest_clock();
  if (gap <= lower_) {
    worker_clock.extra = 0;
    out.release.push_back({worker, Why::within_bound});
    return;
  }
  if (gap <= upper_) {
    if (worker_clock.extra == 0) worker_clock.extra = extra_steps(worker_clock) + 1;  // +1: the worker waits at the last one counted down
    if (--worker_clock.extra > 0) {
      out.release.push_back({worker, Why::extra_steps});
      return;
    }
  }
  worker_clock.extra = 0;
  worker_clock.waiting = true;
  waiting_.emplace(worker_clock.clock, worker);
  out.hold.push_back({worker, Why::ahead_of_slowest, gap});
}

/// The r in [0, upper-lower] after which the wait for the slowest worker's next arrival is predicted to be shortest; the smallest such r.
std::uint32_t GateBound::extra_steps(const WorkerClock& fast) const {
  const WorkerClock& slow = worker_clocks_.at(*at_clock_.begin()->second.begin());
  if (upper_ == lower_ || fast.interval <= Duration{0} || slow.interval <= Duration{0}) return 0;
  std::uint32_t best = 0;
  Duration shortest = Duration::max();
  for (std::uint32_t r = 0; r <= upper_ - lower_; ++r) {
    const Duration ready = fast.last + r * fast.interval - slow.last;
    const auto arrivals = ready.count() <= 0 ? 1 : (ready.count() + slow.interval.count() - 1) / slow.interval.count();
    const Duration wait = arrivals * slow.interval - ready;
    if (wait < shortest) {
      shortest = wait;
      best = r;
    }
  }
  return best;
}

void GateBound::wake(Decisions& out) {
  while (!waiting_.empty() && (at_clock_.empty() || waiting_.begin()->first <= slowest_clock() + lower_)) {
    const WorkerId worker = waiting_.begin()->second;
    waiting_.erase(waiting_.begin());
    worker_clocks_.at(worker).waiting = false;
    out.release.push_back({worker, Why::slowest_moved});
  }
}

void GateBound::enlist(WorkerId worker, std::uint64_t clock) { at_clock_[clock].insert(worker); }

void GateBound::delist(WorkerId worker, std::uint64_t clock) {
  const auto bucket = at_clock_.find(clock);
  bucket->second.erase(worker);
  if (bucket->second.empty()) at_clock_.erase(bucket);
}

}  // namespace motley::policy
