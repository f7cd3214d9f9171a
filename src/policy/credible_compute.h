// A lower bound for the compute time that a worker reports. Only the worker can tell computing from waiting for parameters, but the chief
// knows when it sent the order, when the report arrived and when every server had the contribution.
#pragma once
#include <algorithm>

#include "base/time.h"
#include "policy/constants.h"

namespace motley::policy {

/// `unexplained`: from the earliest possible begin (end of the step before, and arrival of the parameters as the worker reports it) to the
/// report. At least half of it counts as computing; the rest may be messages.
/// `whole`: from the order, or the end of the step before, until every server had the contribution. At least an eighth of it counts as
/// computing, whatever the worker reports about waiting: a worker that reports no time seems at most eight times as fast as it is.
[[nodiscard]] inline Duration credible_compute(Duration claimed, Duration unexplained, Duration whole) {
  return std::max({claimed, unexplained / credibility::most_messages, whole / credibility::most_waiting});
}

}  // namespace motley::policy
