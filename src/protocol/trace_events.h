// What a chief's and a conductor's answers mean to a trace: the same sentences in both worlds.
#pragma once
#include <optional>
#include <vector>

#include "protocol/chief.h"
#include "protocol/pipeline_chief.h"
#include "trace/event.h"

namespace motley::protocol {

/// Without its time. None for what only the driver can tell: Send, Joined (it knows the node), Evaluate, Checkpoint, Finished; or what
/// takes several: Returned.
[[nodiscard]] std::optional<trace::Event> to_trace_events(const ChiefAction& action);

/// The ranges that are back in the pool.
[[nodiscard]] std::vector<trace::Event> to_trace_events(const Returned& returned);
/// An order and the ranges of its lease.
[[nodiscard]] std::vector<trace::Event> to_trace_events(const wire::Order& order);
/// A stage is gone.
[[nodiscard]] trace::Event to_trace_events(const StageExpelled& expelled);
/// Each stage that no layout had before, or that was expelled, joins; after the first layout each is told what it has from now on.
[[nodiscard]] std::vector<trace::Event> to_trace_events(const AssignStages& assignment);

}  // namespace motley::protocol
