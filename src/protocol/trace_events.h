// Trace events for the actions of the chief and of the pipeline chief; the simulator and the processes record the same ones.
#pragma once
#include <optional>
#include <vector>

#include "protocol/chief.h"
#include "protocol/pipeline_chief.h"
#include "trace/event.h"

namespace motley::protocol {

/// None for actions that the driver records itself: Send, Joined (the driver knows the node), Evaluate, Checkpoint, Finished; and for
/// Returned, which takes several events.
[[nodiscard]] std::optional<trace::EventData> to_trace_event(const ChiefAction& action);

/// The ranges that are free again.
[[nodiscard]] std::vector<trace::EventData> to_trace_events(const Returned& returned);
/// The order, then the ranges of its lease.
[[nodiscard]] std::vector<trace::EventData> to_trace_events(const wire::Order& order);
[[nodiscard]] trace::EventData to_trace_event(const StageExpelled& expelled);
/// Joined for each stage that no earlier layout had or that was expelled; Repartitioned for every stage after the first layout.
[[nodiscard]] std::vector<trace::EventData> to_trace_events(const AssignStages& assignment);

}  // namespace motley::protocol
