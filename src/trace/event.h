// Events of a training run: one described struct per kind, in a closed variant. Drivers emit them; summaries, files and checkers read
// them. This module knows no state machine and no policy: their reasons and states are stored as numbers.
#pragma once
#include <boost/describe.hpp>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <variant>

#include "base/ids.h"
#include "base/time.h"

namespace motley::trace {

/// A worker became a member; or a stage was assigned to a node for the first time, its index standing in for the worker.
struct Joined {
  WorkerId worker{};
  std::uint32_t node{};
  Version version{};  // of a stage: mini-batches that its parameters have seen
  bool operator==(const Joined&) const = default;
};
struct Left {
  WorkerId worker{};
  std::uint8_t why{};    // protocol::LeaveReason
  std::uint32_t node{};  // of a stage; else 0
  bool operator==(const Left&) const = default;
};
/// The chief sends an order; the ranges of its lease follow as Leased.
struct Ordered {
  WorkerId worker{};
  Step step{};
  Version version{};
  std::uint64_t samples{};
  std::uint64_t local_steps{};
  bool operator==(const Ordered&) const = default;
};
/// Positions [first, last) of `epoch` are leased for this step.
struct Leased {
  WorkerId worker{};
  Step step{};
  std::uint32_t epoch{};
  std::uint64_t first{};
  std::uint64_t last{};
  bool operator==(const Leased&) const = default;
};
/// The servers begin to send the parameters of `version` to this worker.
struct Released {
  WorkerId worker{};
  Step step{};
  Version version{};
  std::uint8_t why{};  // policy::Why
  std::uint8_t push_bits{};
  std::uint8_t pull_bits{};
  bool operator==(const Released&) const = default;
};
/// The order and its last slice have arrived; with streamed parameters, the order and its first slice.
struct ComputeBegan {
  WorkerId worker{};
  Step step{};
  bool operator==(const ComputeBegan&) const = default;
};
struct ComputeEnded {
  WorkerId worker{};
  Step step{};
  std::uint64_t samples{};
  Duration stalled{};  // part of the step in which the device waited for streamed parameters
  bool operator==(const ComputeEnded&) const = default;
};
/// Every server has the whole contribution.
struct Contributed {
  WorkerId worker{};
  Step step{};
  Version base{};
  std::uint64_t samples{};
  double loss{};    // mean over the samples
  Duration pull{};  // transfer time of the step's parameters
  bool operator==(const Contributed&) const = default;
};
/// An update made `version` from this many contributions.
struct Applied {
  Version version{};
  std::uint64_t parts{};
  double rate{};
  bool operator==(const Applied&) const = default;
};
/// This contribution is part of the update that makes `version`; the update's Applied follows its parts.
struct Counted {
  WorkerId worker{};
  Step step{};
  Version version{};
  std::uint64_t samples{};
  std::uint64_t staleness{};
  double weight{};
  bool operator==(const Counted&) const = default;
};
/// The gate lets this worker wait.
struct Held {
  WorkerId worker{};
  std::uint8_t why{};  // policy::Why
  std::uint64_t gap{};
  bool operator==(const Held&) const = default;
};
/// The step was refused before its contribution was complete.
struct Dropped {
  WorkerId worker{};
  Step step{};
  std::uint8_t why{};  // policy::Why
  bool operator==(const Dropped&) const = default;
};
/// No samples are left that this worker could be given.
struct Idled {
  WorkerId worker{};
  bool operator==(const Idled&) const = default;
};
struct Evaluated {
  Version version{};
  std::uint64_t samples{};  // counted until then
  double accuracy{};
  double loss{};
  bool operator==(const Evaluated&) const = default;
};
/// The simulator or the launcher injected a fault.
struct FaultInjected {
  std::uint32_t node{};
  std::uint8_t kind{};  // cluster::FaultKind
  bool operator==(const FaultInjected&) const = default;
};
struct Finished {
  std::uint8_t why{};       // protocol::EndReason
  std::uint64_t samples{};  // counted
  bool operator==(const Finished&) const = default;
};
/// Positions [first, last) of the step's lease were not computed within its time limit; they are free again.
struct Returned {
  WorkerId worker{};
  Step step{};
  std::uint32_t epoch{};
  std::uint64_t first{};
  std::uint64_t last{};
  bool operator==(const Returned&) const = default;
};
/// The worker stops computing this step; its lease is free again.
struct Cancelled {
  WorkerId worker{};
  Step step{};
  std::uint8_t why{};  // policy::Why
  bool operator==(const Cancelled&) const = default;
};
/// A complete contribution that no update uses; its lease is free again.
struct Discarded {
  WorkerId worker{};
  Step step{};
  std::uint8_t why{};  // policy::Why
  bool operator==(const Discarded&) const = default;
};
/// The strategy's state from now on.
struct StateEntered {
  std::uint8_t state{};  // policy::State: 0 in step, 1 lagging, 2 over-stale
  std::uint64_t gap{};   // newest version less the oldest that is computed on
  std::uint64_t threshold{};
  std::uint64_t stragglers{};
  bool operator==(const StateEntered&) const = default;
};
/// The worker became a straggler, or is one no more.
struct Straggles {
  WorkerId worker{};
  std::uint8_t why{};  // policy::Why
  bool now{};
  double medians{};  // duration of its step over the median of all workers
  bool operator==(const Straggles&) const = default;
};
/// The worker synchronises with this group from now on.
struct Grouped {
  WorkerId worker{};
  std::uint32_t group{};
  std::uint32_t groups{};  // number of groups
  bool operator==(const Grouped&) const = default;
};
/// A stage begins one part of a micro-batch.
struct PartBegan {
  WorkerId stage{};
  std::uint64_t micro_batch{};
  Version version{};     // of the stage's parameters
  std::uint8_t part{};   // pipeline::Part: 0 forward, 1 input gradient, 2 weight gradient
  std::uint64_t late{};  // updates that these parameters lack
  bool operator==(const PartBegan&) const = default;
};
struct PartEnded {
  WorkerId stage{};
  std::uint64_t micro_batch{};
  std::uint8_t part{};
  bool operator==(const PartEnded&) const = default;
};
/// The stage has applied the update that makes `version`.
struct Committed {
  WorkerId stage{};
  Version version{};
  bool operator==(const Committed&) const = default;
};
/// In a new layout this stage holds blocks [first_block, last_block) on `node`, beginning with the parameters of `version`.
struct Repartitioned {
  WorkerId stage{};
  std::uint8_t why{};  // protocol::AssignReason
  Version version{};
  std::uint64_t first_block{};
  std::uint64_t last_block{};
  std::uint32_t node{};
  bool operator==(const Repartitioned&) const = default;
};

/// The index of an alternative is its number in trace files (trace/record.h): append, never reorder.
using EventData = std::variant<Joined, Left, Ordered, Leased, Released, ComputeBegan, ComputeEnded, Contributed, Applied, Counted, Held,
                               Dropped, Idled, Evaluated, FaultInjected, Finished, Returned, Cancelled, Discarded, StateEntered, Straggles,
                               Grouped, PartBegan, PartEnded, Committed, Repartitioned>;

struct Event {
  Instant at{};
  EventData data;
  bool operator==(const Event&) const = default;

  template <class T>
  [[nodiscard]] bool is() const {
    return std::holds_alternative<T>(data);
  }
  /// Null: an event of another kind.
  template <class T>
  [[nodiscard]] const T* as() const {
    return std::get_if<T>(&data);
  }
};

/// The worker or stage that the event is about, if it is about one.
[[nodiscard]] std::optional<WorkerId> worker_of(const EventData& data);
/// The event's kind, as logs and reports call it.
[[nodiscard]] std::string_view name_of(const EventData& data);

/// An arm of `match` for kinds that a sink does not need; naming them keeps the set closed.
template <class... Kinds>
struct Ignored {
  template <class T>
  requires(std::is_same_v<T, Kinds> || ...) void operator()(const T&) const {}
};

/// Receives events. Of one worker they come in order of time; must not throw.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void on_event(const Event& event) = 0;
};

BOOST_DESCRIBE_STRUCT(Joined, (), (worker, node, version))
BOOST_DESCRIBE_STRUCT(Left, (), (worker, why, node))
BOOST_DESCRIBE_STRUCT(Ordered, (), (worker, step, version, samples, local_steps))
BOOST_DESCRIBE_STRUCT(Leased, (), (worker, step, epoch, first, last))
BOOST_DESCRIBE_STRUCT(Released, (), (worker, step, version, why, push_bits, pull_bits))
BOOST_DESCRIBE_STRUCT(ComputeBegan, (), (worker, step))
BOOST_DESCRIBE_STRUCT(ComputeEnded, (), (worker, step, samples, stalled))
BOOST_DESCRIBE_STRUCT(Contributed, (), (worker, step, base, samples, loss, pull))
BOOST_DESCRIBE_STRUCT(Applied, (), (version, parts, rate))
BOOST_DESCRIBE_STRUCT(Counted, (), (worker, step, version, samples, staleness, weight))
BOOST_DESCRIBE_STRUCT(Held, (), (worker, why, gap))
BOOST_DESCRIBE_STRUCT(Dropped, (), (worker, step, why))
BOOST_DESCRIBE_STRUCT(Idled, (), (worker))
BOOST_DESCRIBE_STRUCT(Evaluated, (), (version, samples, accuracy, loss))
BOOST_DESCRIBE_STRUCT(FaultInjected, (), (node, kind))
BOOST_DESCRIBE_STRUCT(Finished, (), (why, samples))
BOOST_DESCRIBE_STRUCT(Returned, (), (worker, step, epoch, first, last))
BOOST_DESCRIBE_STRUCT(Cancelled, (), (worker, step, why))
BOOST_DESCRIBE_STRUCT(Discarded, (), (worker, step, why))
BOOST_DESCRIBE_STRUCT(StateEntered, (), (state, gap, threshold, stragglers))
BOOST_DESCRIBE_STRUCT(Straggles, (), (worker, why, now, medians))
BOOST_DESCRIBE_STRUCT(Grouped, (), (worker, group, groups))
BOOST_DESCRIBE_STRUCT(PartBegan, (), (stage, micro_batch, version, part, late))
BOOST_DESCRIBE_STRUCT(PartEnded, (), (stage, micro_batch, part))
BOOST_DESCRIBE_STRUCT(Committed, (), (stage, version))
BOOST_DESCRIBE_STRUCT(Repartitioned, (), (stage, why, version, first_block, last_block, node))

}  // namespace motley::trace
