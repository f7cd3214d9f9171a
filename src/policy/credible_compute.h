// How long a worker may claim to have computed. Only it can tell computing from waiting for parameters, but the chief sees when the order
// went out, when the worker said that it was done, and when every server had what it made; so a claim has a lower bound.
#pragma once
#include <algorithm>

#include "base/time.h"
#include "policy/constants.h"

namespace motley::policy {

/// `unexplained`: from when it could begin (it was done with the step before, and its parameters had come, as it says) until it said that
/// it was done. Messages take some of that, computing the rest: at least half of it, or it claims too little.
/// `whole`: from its order, or from the end of the step before, until every server had its contribution. Waiting for parameters is its own
/// word as well; but however its time is divided, computing is at least an eighth of it. For who waits so much it matters little what
/// computing takes; who claims nothing seems at most eight times as fast as it is.
[[nodiscard]] inline Duration credible_compute(Duration claimed, Duration unexplained, Duration whole) {
  return std::max({claimed, unexplained / credibility::most_messages, whole / credibility::most_waiting});
}

}  // namespace motley::policy
