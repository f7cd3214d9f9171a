#include "runtime/chief_log.h"

#include <fmt/format.h>

namespace motley::runtime {
namespace {

std::string stuck_text(const std::string& worker, const protocol::Left::Stuck& stuck, Duration step_limit) {
  const std::string expected = stuck.expected > Duration{0} ? fmt::format("expected about {:.3g} s", seconds(stuck.expected))
                                                            : std::string("its first step, so that its speed is unknown");
  return fmt::format(
      "{} is expelled: its process answers but {} step {} for {:.1f} s ({}): {}; its samples go to other workers. Look at that machine, "
      "end the process if it makes no progress, and start it again; if it is only slow, raise cluster.step_limit_s, which is {:g}",
      worker, stuck.computed ? "has not delivered" : "has not computed", stuck.step.value, seconds(stuck.took), expected,
      stuck.computed ? "its contribution does not arrive" : "its device hangs, or its parameters do not arrive", seconds(step_limit));
}

}  // namespace

std::optional<std::string> expulsion_text(const std::string& worker, const protocol::Left& left, const protocol::ChiefOptions& options) {
  if (left.stuck) return stuck_text(worker, *left.stuck, options.step_limit);
  if (left.why == protocol::LeaveReason::sent_not_finite)
    return fmt::format(
        "expelled {}: its contribution has values that are NaN, infinite or beyond 2^60, though it reported finite values; nothing of it "
        "was applied, and its samples go to other workers. Check its memory, device and build",
        worker);
  if (left.why == protocol::LeaveReason::never_finite)
    return fmt::format(
        "expelled {}: by its own report {} contributions in a row were not finite, while those of other workers were; its samples go to "
        "other workers. Check its memory, device and data",
        worker, options.refusals_of_one);
  return std::nullopt;
}

std::string server_stuck_text(const protocol::ServerStuck& stuck, const std::string& address, Duration step_limit) {
  return fmt::format(
      "chief: server {}{} is connected but has done nothing for {:.1f} s, longer than cluster.step_limit_s, which is {:g}; its part of the "
      "model is in the last checkpoint: end that process, start it again and go on with --resume",
      stuck.server.value, address.empty() ? "" : " at " + address, seconds(stuck.for_how_long), seconds(step_limit));
}

std::string server_lost_text(ServerId server, const std::string& address, const std::string& why) {
  return fmt::format("chief: server {} at {} is gone ({}); its part of the model is in the last checkpoint: go on with --resume",
                     server.value, address, why);
}

}  // namespace motley::runtime
