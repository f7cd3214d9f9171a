#include "policy/decisions.h"

#include "base/check.h"

namespace motley::policy {

std::string_view sentence(Why why) {
  switch (why) {
    case Why::first_order: return "it has just joined";
    case Why::barrier_complete: return "everyone of the round has contributed";
    case Why::on_arrival: return "nobody waits here";
    case Why::within_bound: return "it is not too far ahead of the slowest";
    case Why::extra_steps: return "waiting now would cost more than running a few steps ahead";
    case Why::slowest_moved: return "the slowest has caught up";
    case Why::work_returned: return "somebody's lease came back";
    case Why::round_in_progress: return "it joins with the next round";
    case Why::others_computing: return "the round is not complete";
    case Why::ahead_of_slowest: return "it is as far ahead of the slowest as the bound allows";
    case Why::not_finite: return "a value in it is not a number or infinite";
    case Why::waited_long_enough: return "the over-stale one has not come in time";
    case Why::over_stale_ahead: return "somebody over-stale is expected any moment";
    case Why::against_momentum: return "over-stale, and it points against the way the model goes";
    case Why::over_stale: return "it would come too late to be of use";
    case Why::late_and_behind: return "its step takes longer than the others', and it has fallen behind";
    case Why::very_late: return "its step takes far longer than the others'";
    case Why::version_too_old: return "what it computes on is older than the threshold allows";
    case Why::not_its_turn: return "another group's values travel now";
    case Why::its_turn: return "the other group's values are through";
    case Why::caught_up: return "several steps in a row took it no longer than the others";
  }
  fail_check("every reason has a sentence");
}

}  // namespace motley::policy
