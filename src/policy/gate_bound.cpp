#include "policy/gate_bound.h"

#include "base/check.h"

namespace motley::policy {

GateBound::GateBound(std::uint32_t lower, std::uint32_t upper) : lower_(lower), upper_(upper) {
  check(lower <= upper, "the lower bound is not above the upper");
}

void GateBound::joined(Instant now, std::span<const WorkerId> workers, Decisions& out) {
  for (const WorkerId worker : workers) {
    Pace pace;
    pace.clock = at_clock_.empty() ? 0 : slowest_clock();  // a newcomer neither holds the others up nor runs ahead of them
    pace.last = now;
    paces_.emplace(worker, pace);
    enlist(worker, pace.clock);
    out.release.push_back({worker, Why::first_order});
  }
}

void GateBound::left(Instant, WorkerId worker, Decisions& out) {
  const auto found = paces_.find(worker);
  check(found != paces_.end(), "only who is here can leave");
  const Pace pace = found->second;
  paces_.erase(found);
  if (!pace.resting) delist(worker, pace.clock);
  if (pace.waiting) waiting_.erase({pace.clock, worker});
  for (auto& [id, other] : paces_)
    if (other.resting) out.release.push_back({id, Why::work_returned});
  wake(out);
}

void GateBound::ordered(Instant, WorkerId worker, Duration) {
  Pace& pace = paces_.at(worker);
  if (!pace.resting) return;
  pace.resting = false;
  if (!at_clock_.empty()) pace.clock = slowest_clock();
  enlist(worker, pace.clock);
}

void GateBound::rested(Instant, WorkerId worker, Decisions& out) {
  Pace& pace = paces_.at(worker);
  if (pace.resting) return;
  pace.resting = true;
  delist(worker, pace.clock);
  wake(out);
}

void GateBound::contributed(Instant now, const Contribution& contribution, Decisions& out) {
  out.apply.push_back({{contribution}});
  Pace& pace = paces_.at(contribution.worker);
  tick(contribution.worker, pace, now);
  wake(out);
  go_or_wait(contribution.worker, pace, out);
}

void GateBound::refused(Instant, WorkerId worker, Decisions& out) { out.release.push_back({worker, Why::work_returned}); }

std::uint64_t GateBound::slowest_clock() const { return at_clock_.begin()->first; }

void GateBound::tick(WorkerId worker, Pace& pace, Instant now) {
  delist(worker, pace.clock);
  if (pace.clock > 0) pace.interval = now - pace.last;
  pace.last = now;
  ++pace.clock;
  enlist(worker, pace.clock);
}

void GateBound::go_or_wait(WorkerId worker, Pace& pace, Decisions& out) {
  const std::uint64_t gap = pace.clock - slowest_clock();
  if (gap <= lower_) {
    pace.extra = 0;
    out.release.push_back({worker, Why::within_bound});
    return;
  }
  if (gap <= upper_) {
    if (pace.extra == 0) pace.extra = extra_steps(pace) + 1;  // +1: the last one counted down is the one that waits
    if (--pace.extra > 0) {
      out.release.push_back({worker, Why::extra_steps});
      return;
    }
  }
  pace.extra = 0;
  pace.waiting = true;
  waiting_.emplace(pace.clock, worker);
  out.hold.push_back({worker, Why::ahead_of_slowest, gap});
}

/// The r in [0, upper-lower] after which the wait for the slowest worker's next arrival is predicted to be shortest; the smallest such r.
std::uint32_t GateBound::extra_steps(const Pace& fast) const {
  const Pace& slow = paces_.at(*at_clock_.begin()->second.begin());
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
    paces_.at(worker).waiting = false;
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
