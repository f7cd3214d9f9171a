#include "policy/gate/gate_none.h"

namespace motley::policy {

void GateNone::joined(Instant, std::span<const WorkerId> workers, Decisions& out) {
  for (const WorkerId worker : workers) out.release.push_back({worker, Why::first_order});
}

void GateNone::left(Instant, WorkerId worker, Decisions& out) {
  idle_.erase(worker);
  for (const WorkerId idle : idle_) out.release.push_back({idle, Why::work_returned});
}

void GateNone::ordered(Instant, WorkerId worker, Duration) { idle_.erase(worker); }

void GateNone::idled(Instant, WorkerId worker, Decisions&) { idle_.insert(worker); }

void GateNone::contributed(Instant, const Contribution& contribution, Decisions& out) {
  out.apply.push_back({{contribution}});
  out.release.push_back({contribution.worker, Why::on_arrival});
}

void GateNone::refused(Instant, WorkerId worker, Decisions& out) { out.release.push_back({worker, Why::work_returned}); }

}  // namespace motley::policy
