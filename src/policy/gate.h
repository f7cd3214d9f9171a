// Gates: who waits for whom, and which contributions make one update together.
//
// A worker is outside, idle (released, but there was nothing to give it, or not released yet) or busy (ordered, not yet contributed).
// The chief says what happens; the gate answers with Apply, Release and Hold. Guarantee of every gate: a worker that is idle while
// nobody is busy is released, so that training cannot stop while there is work.
#pragma once
#include <span>

#include "policy/decisions.h"

namespace motley::policy {

class Gate {
 public:
  virtual ~Gate() = default;
  /// New workers, never seen before, that come in together. Ids ascend.
  virtual void joined(Instant now, std::span<const WorkerId> workers, Decisions& out) = 0;
  /// The worker is gone. If it was busy its contribution will never come; if it had contributed, that stays valid.
  virtual void left(Instant now, WorkerId worker, Decisions& out) = 0;
  /// A released worker got an order: it is busy from now on.
  virtual void ordered(Instant now, WorkerId worker) = 0;
  /// A released worker stays idle: there was nothing to give it.
  virtual void rested(Instant now, WorkerId worker, Decisions& out) = 0;
  virtual void contributed(Instant now, const Contribution& contribution, Decisions& out) = 0;
  /// A busy worker's contribution was refused; the worker is idle again and its lease is back in the pool.
  virtual void refused(Instant now, WorkerId worker, Decisions& out) = 0;
  /// From the next release on, whoever is here may work on so many steps at once beyond the oldest. Gates without rounds have no use for
  /// it.
  virtual void overlap(std::uint32_t /*delay*/) {}
  /// Everyone is released at the same versions.
  [[nodiscard]] virtual bool in_step() const { return false; }
};

}  // namespace motley::policy
