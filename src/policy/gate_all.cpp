#include "policy/gate_all.h"

#include <algorithm>

namespace motley::policy {

void GateAll::joined(Instant, std::span<const WorkerId> workers, Decisions& out) {
  for (const WorkerId worker : workers) {
    roster_.join(worker);
    if (roster_.busy_count() > 0) out.hold.push_back({worker, Why::round_in_progress, roster_.busy_count()});
  }
  begin_round_if_complete(Why::first_order, out);
}

void GateAll::left(Instant, WorkerId worker, Decisions& out) {
  roster_.leave(worker);
  begin_round_if_complete(arrived_.empty() ? Why::work_returned : Why::barrier_complete, out);
}

void GateAll::ordered(Instant, WorkerId worker) { roster_.set_busy(worker, true); }

void GateAll::rested(Instant, WorkerId, Decisions&) {}

void GateAll::contributed(Instant, const Contribution& contribution, Decisions& out) {
  roster_.set_busy(contribution.worker, false);
  arrived_.push_back(contribution);
  if (roster_.busy_count() > 0) out.hold.push_back({contribution.worker, Why::others_computing, roster_.busy_count()});
  begin_round_if_complete(Why::barrier_complete, out);
}

void GateAll::refused(Instant, WorkerId worker, Decisions& out) {
  roster_.set_busy(worker, false);
  if (roster_.busy_count() > 0) out.hold.push_back({worker, Why::others_computing, roster_.busy_count()});
  begin_round_if_complete(arrived_.empty() ? Why::work_returned : Why::barrier_complete, out);
}

void GateAll::begin_round_if_complete(Why why, Decisions& out) {
  if (roster_.busy_count() > 0) return;
  if (!arrived_.empty()) {
    std::sort(arrived_.begin(), arrived_.end(), [](const Contribution& a, const Contribution& b) { return a.worker < b.worker; });
    out.apply.push_back({std::move(arrived_)});
    arrived_.clear();
  }
  for (const WorkerId worker : roster_.workers()) out.release.push_back({worker, why});
}

}  // namespace motley::policy
