// Gates: who waits for whom, and which contributions make one update together.
//
// A worker is outside, idle (released, but there was nothing to give it, or not released yet) or busy (ordered, not yet contributed).
// The chief says what happens; the gate answers with Apply, Release and Hold. Guarantee of every gate: a worker that is idle while
// nobody is busy is released, so that training cannot stop while there is work.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "policy/decisions.h"
#include "policy/monitor.h"
#include "policy/saved_state.h"

namespace motley::policy {

class Gate {
 public:
  virtual ~Gate() = default;
  /// New workers, never seen before, that come in together. Ids ascend.
  virtual void joined(Instant now, std::span<const WorkerId> workers, Decisions& out) = 0;
  /// The worker is gone. If it was busy its contribution will never come; if it had contributed, that stays valid.
  virtual void left(Instant now, WorkerId worker, Decisions& out) = 0;
  /// A released worker got an order: it is busy from now on. `expected`: how long that will take, from what was measured; 0: not known.
  virtual void ordered(Instant now, WorkerId worker, Duration expected) = 0;
  /// A released worker stays idle: there was nothing to give it.
  virtual void idled(Instant now, WorkerId worker, Decisions& out) = 0;
  virtual void contributed(Instant now, const Contribution& contribution, Decisions& out) = 0;
  /// A busy worker's contribution was refused; the worker is idle again and its lease is back in the pool.
  virtual void refused(Instant now, WorkerId worker, Decisions& out) = 0;
  /// What servers say of a contribution that was to be judged: its inner product with the momentum. Its worker may have left since.
  virtual void alignment_known(Instant /*now*/, const AlignmentTest& /*which*/, double /*along*/, Decisions& /*out*/) {}
  /// An update was made, and this is what has been measured by now.
  virtual void updated(const Monitor& /*monitor*/) {}
  /// Time has passed: what it had asked to be woken for may be due.
  virtual void woken(Instant /*now*/, Decisions& /*out*/) {}
  /// From the next release on, whoever is here may work on so many steps at once beyond the oldest. Gates without rounds have no use for
  /// it.
  virtual void overlap(std::uint32_t /*delay*/) {}
  /// Everyone is released at the same versions.
  [[nodiscard]] virtual bool in_step() const { return false; }
  /// Those with the same number are released together; none: this one goes alone.
  [[nodiscard]] virtual std::optional<std::uint32_t> cohort(WorkerId) const { return std::nullopt; }
  /// How many versions are expected to be made while this worker computes on what it is sent next, beyond the overlap.
  [[nodiscard]] virtual std::uint32_t staleness(WorkerId) const { return 0; }
  /// Streams of updates that run beside each other, each with its share of the global batch. Momentum is shared out among them.
  [[nodiscard]] virtual std::uint32_t streams() const { return 1; }
  /// Contributions may be compensated for what has changed since their base: servers keep what they send.
  [[nodiscard]] virtual bool compensates() const { return false; }
  /// What a checkpoint must keep of it; restore() reads the same names.
  virtual void save(StateWriter& /*state*/) const {}
  virtual void restore(StateReader& /*state*/) {}
};

}  // namespace motley::policy
