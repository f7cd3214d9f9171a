// Events in the queue of a simulated cluster (sim/world.h): a closed set.
#pragma once
#include <cstdint>
#include <variant>

namespace motley::sim {

/// A control message arrives; its number in ControlMessages.
struct ControlArrives {
  std::uint32_t message = 0;
};
// Callbacks of sim/network.h.
struct EgressFree {
  std::uint32_t egress = 0;
};
struct BulkMessageReaches {
  std::uint32_t bulk_message = 0;
};
struct BulkMessageArrives {
  std::uint32_t bulk_message = 0;
};
// A node's device; `serial` counts its steps, so that events of an abandoned step are recognised.
struct ComputeEnds {
  std::uint32_t node = 0;
  std::uint32_t serial = 0;
};
/// A device with streamed parameters reads slices or produces gradients.
struct SlicesDue {
  std::uint32_t node = 0;
  std::uint32_t serial = 0;
};
/// The device of this connection's worker, which was told to stop, reacts.
struct DeviceMoves {
  std::uint32_t connection = 0;
};
struct WorkerTick {
  std::uint32_t connection = 0;
};
struct ChiefTick {};
/// The chief asked for a Tick at this time.
struct TimeIsUp {};
/// The fault of this index in cluster::Spec::faults is due.
struct FaultDue {
  std::uint32_t index = 0;
};
struct PauseEnds {
  std::uint32_t node = 0;
};
/// The chief's side of a connection is closed.
struct LossNoticed {
  std::uint32_t connection = 0;
};

using WorldEvent = std::variant<ControlArrives, EgressFree, BulkMessageReaches, BulkMessageArrives, ComputeEnds, SlicesDue, DeviceMoves,
                                WorkerTick, ChiefTick, TimeIsUp, FaultDue, PauseEnds, LossNoticed>;

}  // namespace motley::sim
