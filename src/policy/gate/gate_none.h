// Gate `none`: no worker waits.
//
// Rule: each contribution is applied alone when it arrives; its worker continues at once.
// Guarantee: every device is always busy. Staleness has no bound: it is about P-1 versions, more for slower workers.
// Cost: O(1) per contribution.
#pragma once
#include <set>

#include "policy/gate/gate.h"

namespace motley::policy {

class GateNone : public Gate {
 public:
  void joined(Instant now, std::span<const WorkerId> workers, Decisions& out) override;
  void left(Instant now, WorkerId worker, Decisions& out) override;
  void ordered(Instant now, WorkerId worker, Duration expected) override;
  void idled(Instant now, WorkerId worker, Decisions& out) override;
  void contributed(Instant now, const Contribution& contribution, Decisions& out) override;
  void refused(Instant now, WorkerId worker, Decisions& out) override;

 private:
  std::set<WorkerId> idle_;  // released when a lease is returned
};

}  // namespace motley::policy
