#include "policy/gate/gate_all.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace motley::policy {

void GateAll::joined(Instant, std::span<const WorkerId> workers, Decisions& out) {
  for (const WorkerId worker : workers) {
    worker_set_.join(worker);
    if (pending_.size() <= worker.value) pending_.resize(worker.value + 1);
  }
  go_on(Why::first_order, out);
  for (const WorkerId worker : workers)
    if (idle(worker)) out.hold.push_back({worker, Why::round_in_progress, worker_set_.busy_count()});
}

void GateAll::left(Instant, WorkerId worker, Decisions& out) {
  worker_set_.leave(worker);
  for (const RoundNumber owed : pending_[worker.value].ordered) settle(owed);
  for (const RoundNumber owed : pending_[worker.value].released) settle(owed);
  pending_[worker.value] = {};
  const bool anything = !rounds_.empty() && !rounds_.front().arrived.empty();
  go_on(anything ? Why::barrier_complete : Why::work_returned, out);
}

void GateAll::ordered(Instant, WorkerId worker, Duration) {
  PendingRounds& pending = pending_[worker.value];
  pending.ordered.push_back(pending.released.front());
  pending.released.erase(pending.released.begin());
  worker_set_.set_busy(worker, true);
}

void GateAll::idled(Instant, WorkerId worker, Decisions&) {
  PendingRounds& pending = pending_[worker.value];
  settle(pending.released.front());
  pending.released.erase(pending.released.begin());
  // A round without any member does not exist.
  while (!rounds_.empty() && rounds_.back().missing == 0 && rounds_.back().arrived.empty()) rounds_.pop_back();
}

void GateAll::contributed(Instant, const Contribution& contribution, Decisions& out) {
  const WorkerId worker = contribution.worker;
  PendingRounds& pending = pending_[worker.value];
  const RoundNumber number = pending.ordered.front();
  pending.ordered.erase(pending.ordered.begin());
  settle(number);
  round(number).arrived.push_back(contribution);
  if (pending.ordered.empty()) worker_set_.set_busy(worker, false);
  go_on(Why::barrier_complete, out);
  hold_if_idle(worker, out);
}

void GateAll::refused(Instant, WorkerId worker, Decisions& out) {
  PendingRounds& pending = pending_[worker.value];
  settle(pending.ordered.front());
  pending.ordered.erase(pending.ordered.begin());
  if (pending.ordered.empty()) worker_set_.set_busy(worker, false);
  const bool anything = !rounds_.front().arrived.empty();
  go_on(anything ? Why::barrier_complete : Why::work_returned, out);
  hold_if_idle(worker, out);
}

bool GateAll::idle(WorkerId worker) const { return pending_[worker.value].ordered.empty() && pending_[worker.value].released.empty(); }

/// Called last, when it is known whether the worker was released.
void GateAll::hold_if_idle(WorkerId worker, Decisions& out) const {
  if (idle(worker) && !rounds_.empty()) out.hold.push_back({worker, Why::others_computing, rounds_.front().missing});
}

/// Closes complete rounds, then opens as many as may be in progress. Within a round no idle worker is released again: there is no more
/// work than when the round began, unless a lease was returned.
void GateAll::go_on(Why why, Decisions& out) {
  const RoundNumber before = oldest_;
  while (!rounds_.empty() && rounds_.front().missing == 0) {
    std::vector<Contribution>& arrived = rounds_.front().arrived;
    std::sort(arrived.begin(), arrived.end(),
              [](const Contribution& a, const Contribution& b) { return std::tie(a.worker, a.step) < std::tie(b.worker, b.step); });
    if (!arrived.empty()) out.apply.push_back({std::move(arrived)});
    rounds_.pop_front();
    ++oldest_;
  }
  if (worker_set_.workers().empty() || (oldest_ == before && why == Why::barrier_complete)) return;
  while (rounds_.size() <= overlap_) {
    const RoundNumber number = oldest_ + rounds_.size();
    rounds_.push_back({worker_set_.workers().size(), {}});
    for (const WorkerId worker : worker_set_.workers()) {
      pending_[worker.value].released.push_back(number);
      out.release.push_back({worker, why});
    }
  }
}

}  // namespace motley::policy
