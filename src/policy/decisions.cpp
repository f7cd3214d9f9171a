#include "policy/decisions.h"

#include "base/check.h"

namespace motley::policy {

std::string_view sentence(Why why) {
  switch (why) {
    case Why::first_order: return "the worker has just joined";
    case Why::barrier_complete: return "all workers of the round have contributed";
    case Why::on_arrival: return "this gate does not wait";
    case Why::within_bound: return "the worker is within the bound of the slowest one";
    case Why::extra_steps: return "waiting now would cost more than running a few steps ahead";
    case Why::slowest_moved: return "the slowest worker has caught up";
    case Why::work_returned: return "a lease was returned to the pool";
    case Why::round_in_progress: return "the worker joins with the next round";
    case Why::others_computing: return "the round is not complete";
    case Why::ahead_of_slowest: return "the worker is as far ahead of the slowest one as the bound allows";
    case Why::not_finite: return "the contribution has a value that is NaN or infinite";
    case Why::waited_long_enough: return "the over-stale contribution did not arrive in time";
    case Why::over_stale_ahead: return "an over-stale contribution is expected soon";
    case Why::against_momentum: return "the contribution is over-stale and points against the momentum";
    case Why::over_stale: return "the contribution would be too stale to be useful";
    case Why::late_and_behind: return "the step takes longer than the median, and the worker has fallen behind";
    case Why::very_late: return "the step takes far longer than the median";
    case Why::version_too_old: return "the base version is older than the threshold allows";
    case Why::not_its_turn: return "another group's values are being sent";
    case Why::its_turn: return "the other group's values were sent";
    case Why::caught_up: return "several steps in a row took about the median time";
  }
  fail_check("every reason has a sentence");
}

}  // namespace motley::policy
