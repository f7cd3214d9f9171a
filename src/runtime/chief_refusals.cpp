// The chief's process and numbers that are none: who sent them, and what is done when the model itself has them.
#include <fmt/format.h>

#include <utility>

#include "runtime/chief_process.h"

namespace motley::runtime {

/// Whom the chief sends away is named; connections that end are told of where they do.
void ChiefProcess::log_departure(const protocol::Left& left) {
  const auto named = nodes_of_workers_.extract(left.worker);
  const auto link = by_worker_.find(left.worker);
  std::string who = fmt::format("worker {} on node {}", left.worker.value, named.empty() ? "?" : named.mapped());
  if (link != by_worker_.end()) who += fmt::format(" ({})", link->second->connection->peer());
  if (left.why == protocol::LeaveReason::sent_not_finite)
    hooks_.log(
        fmt::format("sent {} away: its contribution has values that are no numbers, infinite or beyond 2^60, though it called it "
                    "finite; nothing of it was applied, and others get its samples. Look at its memory, device and build",
                    who));
  if (left.why == protocol::LeaveReason::never_finite)
    hooks_.log(
        fmt::format("sent {} away: {} contributions in a row were not finite, as it says itself, while those of others were; others "
                    "get its samples. Look at its memory, device and data",
                    who, options_.chief.refusals_of_one));
}

void ChiefProcess::model_not_finite(Version version, const std::string& what) {
  hooks_.log(fmt::format("training diverged: in the model of version {} {} is not finite", version.value, what));
  if (!outcome_) return tell(protocol::ModelNotFinite{});
  outcome_->why = protocol::EndReason::diverged;  // not told yet
}

}  // namespace motley::runtime
