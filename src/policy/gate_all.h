// Gate `all`: a barrier over everyone of the round.
//
// Rule: a round begins when nobody is busy; whoever is idle then takes part. When the last of them has contributed (or left), all
//   contributions make one update, in order of worker id, and the next round begins. Who joins in mid-round waits for the next.
// Guarantee: staleness 0; with fixed membership the result does not depend on timing.
// Cost: everyone waits for the slowest. O(P) per round, O(1) per contribution.
#pragma once
#include "policy/gate.h"
#include "policy/roster.h"

namespace motley::policy {

class GateAll : public Gate {
 public:
  void joined(Instant now, std::span<const WorkerId> workers, Decisions& out) override;
  void left(Instant now, WorkerId worker, Decisions& out) override;
  void ordered(Instant now, WorkerId worker) override;
  void rested(Instant now, WorkerId worker, Decisions& out) override;
  void contributed(Instant now, const Contribution& contribution, Decisions& out) override;
  void refused(Instant now, WorkerId worker, Decisions& out) override;

 private:
  void begin_round_if_complete(Why why, Decisions& out);
  Roster roster_;
  std::vector<Contribution> arrived_;
};

}  // namespace motley::policy
