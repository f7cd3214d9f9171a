// The chief's process and time: what its machine is told, when, and what the user is told of those who do not get on.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/chief_process.h"

namespace motley::runtime {

/// The ticker sees to it that the machine hears something twice a heartbeat. If it did not for so long that somebody might be blamed for
/// it, this process stood still, and what others have sent us waits.
void ChiefProcess::tell(const protocol::ChiefEvent& event) {
  if (ended_) return;
  const Instant now = clock_.now();
  const Duration missed = now - std::exchange(last_driven_, now);
  const Duration deadline = std::min(options_.chief.silence_deadline, options_.chief.step_limit);
  if (missed > std::max(options_.cluster.heartbeat, deadline / 2)) {
    for (auto& [connection, link] : links_) link.last_heard += missed;
    step(now, protocol::DriverPaused{missed});
  }
  step(now, event);
}

void ChiefProcess::step(Instant now, const protocol::ChiefEvent& event) {
  if (ended_) return;
  ++events_;
  protocol::ChiefActions actions;
  chief_.step(now, event, actions);
  if (recorder_) recorder_->stepped(now, event, actions);
  for (const auto& action : actions) carry_out(action);
}

void ChiefProcess::name_stuck(WorkerId worker, const protocol::Left::Stuck& stuck) {
  const auto found = by_worker_.find(worker);
  std::string who = fmt::format("worker {}", worker.value);
  if (found != by_worker_.end()) {
    const Link& link = *found->second;
    if (link.node) who += fmt::format(", {}", options_.cluster.nodes[link.node->value].name);
    who += fmt::format(", at {}", link.connection->peer());
  }
  const std::string expected = stuck.expected > Duration{0} ? fmt::format("expected about {:.3g} s", seconds(stuck.expected))
                                                            : std::string("its first, so that nothing is known of its speed");
  hooks_.log(
      fmt::format("{} is expelled: it is heard, but {} step {} for {:.1f} s ({}): {}; its samples go to others. Look at that machine, end "
                  "the process if "
                  "it does not move, and start it again; if it is only slow, raise cluster.step_limit_s, which is {:g}",
                  who, stuck.computed ? "has not delivered" : "has not computed", stuck.step.value, seconds(stuck.took), expected,
                  stuck.computed ? "what it made is stuck on the way" : "its device hangs, or its parameters do not reach it",
                  seconds(options_.cluster.step_limit)));
}

void ChiefProcess::give_up_on(const protocol::ServerStuck& stuck) {
  const std::string& address = server_addresses_[stuck.server.value];
  end(world_failed(fmt::format(
      "chief: server {}{} is connected but has done nothing for {:.1f} s, longer than cluster.step_limit_s, which is {:g}; its "
      "part of the model is in the last checkpoint: end that process, start it again and go on with --resume",
      stuck.server.value, address.empty() ? "" : " at " + address, seconds(stuck.for_how_long), seconds(options_.cluster.step_limit))));
}

}  // namespace motley::runtime
