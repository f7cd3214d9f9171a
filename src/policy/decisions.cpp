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
  }
  fail_check("every reason has a sentence");
}

}  // namespace motley::policy
