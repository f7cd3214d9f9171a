#include "runtime/pipeline_chief_log.h"

#include <fmt/format.h>

namespace motley::runtime {

std::string_view reason_text(protocol::AssignReason why) {
  switch (why) {
    case protocol::AssignReason::begins: return "training begins";
    case protocol::AssignReason::unevenness: return "stages have become uneven";
    case protocol::AssignReason::device_joined: return "a node has joined";
    case protocol::AssignReason::loss: return "a stage was lost";
  }
  return "";
}

std::string expulsion_text(const std::string& node, const protocol::StageExpelled& expelled, std::size_t stages, Duration step_limit) {
  const std::string longest = expelled.longest > Duration{0}
                                  ? fmt::format("the longest before took {:.3g} s", seconds(expelled.longest))
                                  : std::string("it has not computed a mini-batch yet, so that its speed is unknown");
  return fmt::format(
      "{} is expelled: its process answers but stage {} of {} has computed one piece of work for {:.1f} s ({}): its device hangs; the "
      "other "
      "stages take over its blocks. Look at that machine, end the process if it makes no progress, and start it again; if it is only slow, "
      "raise cluster.step_limit_s, which is {:g}",
      node, expelled.stage + 1, stages, seconds(expelled.took), longest, seconds(step_limit));
}

}  // namespace motley::runtime
