// What happened, one flat record each. The trace knows no machine and no policy: drivers tell it, summaries and checkers read it.
#pragma once
#include <cstdint>
#include <string_view>

#include "base/ids.h"
#include "base/time.h"

namespace motley::trace {

/// Beside each kind: which fields of Event carry something. A kind's number is its name in trace files: append, never reorder.
enum class Kind : std::uint8_t {
  joined,         // worker; first = node; version = that a stage begins with
  left,           // worker; why; of a stage: first = node
  ordered,        // worker step version; first = samples, last = local steps
  leased,         // worker step; first..last = positions, epoch
  released,       // worker step version; why; value, second = bits of push and pull: the servers begin to send it parameters
  compute_began,  // worker step: the order and the last slice have arrived, or the first where parameters come in while it computes
  compute_ended,  // worker step; first = samples; value = seconds of it in which the device stood still for parameters
  contributed,    // worker step; version = base; first = samples; value = mean loss, second = seconds that its parameters travelled: every
                  // server has it all
  applied,        // version; first = parts; value = rate
  counted,        // worker step; version = of the update it went into; first = samples, last = staleness; value = weight
  held,           // worker; why; first = gap
  dropped,        // worker step; why
  idled,          // worker: there is nothing left to give it
  evaluated,      // version; first = samples counted; value = accuracy, second = loss
  fault,          // first = node, last = kind of fault
  finished,       // why; first = samples counted
  returned,       // worker step; first..last = positions of its lease that it had no time for, epoch
  cancelled,      // worker step; why: what it was computing is no longer wanted, its lease is back in the pool
  discarded,      // worker step; why: contributed, but not used; its lease is back in the pool
  state,          // first = state (0 in step, 1 lagging, 2 over-stale), last = gap, value = threshold, second = stragglers
  straggles,      // worker; why; first = 1 from now on, 0 no more; value = its step in medians
  grouped,        // worker; first = its group from now on, last = groups that there are
  part_began,     // worker = stage, step = micro-batch; version = its parameters'; first = part (0 forward, 1 input, 2 weight gradient),
                  // last = updates that they lack
  part_ended,     // worker = stage, step = micro-batch; first = part
  committed,      // worker = stage; version = that it has now
  repartition     // worker = stage; version from which on; first..last = its blocks, epoch = its node
};

struct Event {
  Instant at{};
  Kind kind{};
  std::uint8_t why{};  // a policy or protocol reason, by number
  std::uint32_t epoch{};
  WorkerId worker{};
  Step step{};
  Version version{};
  std::uint64_t first{};
  std::uint64_t last{};
  double value{};
  double second{};
  bool operator==(const Event&) const = default;
};

[[nodiscard]] std::string_view name_of(Kind kind);

/// Where events go. Told in order of time; must not throw.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void on_event(const Event& event) = 0;
};

}  // namespace motley::trace
