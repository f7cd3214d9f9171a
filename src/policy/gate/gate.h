// Interface of gates. A gate decides which workers wait for which others, and which contributions form one update.
//
// A worker is outside, idle (not released, or released without work to do) or busy (ordered, not yet contributed). The chief reports
// events; the gate returns Apply, Release and Hold. Guarantee of every gate: an idle worker is released when no worker is busy, so that
// training cannot stop while there is work.
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
  /// New workers that join together. Ids ascend and were never used before.
  virtual void joined(Instant now, std::span<const WorkerId> workers, Decisions& out) = 0;
  /// The worker has left. If it was busy, its contribution will not arrive; contributions that it has made stay valid.
  virtual void left(Instant now, WorkerId worker, Decisions& out) = 0;
  /// A released worker was sent an order: it is busy from now on. `expected`: predicted time until it contributes; 0: not known.
  virtual void ordered(Instant now, WorkerId worker, Duration expected) = 0;
  /// A released worker stays idle: there was no work for it.
  virtual void idled(Instant now, WorkerId worker, Decisions& out) = 0;
  virtual void contributed(Instant now, const Contribution& contribution, Decisions& out) = 0;
  /// A busy worker's contribution was refused: the worker is idle and its lease is back in the pool.
  virtual void refused(Instant now, WorkerId worker, Decisions& out) = 0;
  /// The result of an AlignmentTest: the contribution's inner product with the momentum. Its worker may have left since.
  virtual void alignment_known(Instant /*now*/, const AlignmentTest& /*which*/, double /*alignment*/, Decisions& /*out*/) {}
  /// An update was made; the monitor holds all measurements so far.
  virtual void updated(const Monitor& /*monitor*/) {}
  /// The time that the gate asked for (Decisions::wake) may have come.
  virtual void woken(Instant /*now*/, Decisions& /*out*/) {}
  /// From the next release on, each worker may hold this many steps beyond the oldest. Gates without rounds ignore it.
  virtual void overlap(std::uint32_t /*delay*/) {}
  /// All workers are released at the same versions.
  [[nodiscard]] virtual bool in_step() const { return false; }
  /// Workers with the same number are released together; none: this worker is released alone.
  [[nodiscard]] virtual std::optional<std::uint32_t> cohort(WorkerId) const { return std::nullopt; }
  /// The expected staleness, in versions, of this worker's next contribution, beyond that of the overlap.
  [[nodiscard]] virtual std::uint32_t staleness(WorkerId) const { return 0; }
  /// Concurrent streams of updates, each with a share of the global batch. The momentum is divided among them.
  [[nodiscard]] virtual std::uint32_t streams() const { return 1; }
  /// Contributions may be compensated for the change since their base version: servers keep the parameters that they send.
  [[nodiscard]] virtual bool compensates() const { return false; }
  /// Writes the state that a checkpoint must keep; restore() reads the same names.
  virtual void save(StateWriter& /*state*/) const {}
  virtual void restore(StateReader& /*state*/) {}
};

}  // namespace motley::policy
