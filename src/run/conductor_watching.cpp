// The conductor's process and time: who does not get on, and whether it did not attend itself.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "protocol/narration.h"
#include "run/conductor_process.h"

namespace motley::run {
namespace {

constexpr std::uint32_t most_times = 10;  // in a row that nobody moves

}  // namespace

/// The ticker looks twice a heartbeat. If it did not for so long that somebody might be blamed for it, this process stood still, and what
/// others have sent us waits.
void ConductorProcess::attend() {
  const Instant now = clock_.now();
  const Duration missed = now - std::exchange(attended_, now);
  const Duration deadline = std::min(options_.cluster.silence_deadline, options_.cluster.step_limit);
  if (missed <= std::max(options_.cluster.heartbeat, deadline / 2)) return;
  for (auto& [connection, link] : links_) link.heard += missed;
  tell(protocol::Unattended{missed});
}

void ConductorProcess::doing(std::uint32_t device, const wire::Doing& said) {
  const auto found = std::find_if(cut_.begin(), cut_.end(), [&](const plan::Stage& stage) { return stage.device == device; });
  if (found == cut_.end()) return;
  tell(protocol::StageDoing{said.generation, static_cast<std::uint32_t>(found - cut_.begin()), said.done, said.busy,
                            std::exchange(slices_moved_, false)});
}

void ConductorProcess::expelled(const protocol::StageExpelled& who) {
  trace::Event event = protocol::narrated(who);
  event.at = Instant{trained()};
  narrate(event);
  Link* link = link_of_device(who.device);
  const std::string longest = who.longest > Duration{0}
                                  ? fmt::format("the longest before took {:.3g} s", seconds(who.longest))
                                  : std::string("it has not done a mini-batch yet, so that nothing is known of its speed");
  hooks_.log(fmt::format(
      "{}{} is expelled: it is heard, but stage {} of {} has been at one piece of work for {:.1f} s ({}): its device hangs; the others "
      "take "
      "its blocks over. Look at that machine, end the process if it does not move, and start it again; if it is only slow, raise "
      "cluster.step_limit_s, which is {:g}",
      options_.cluster.nodes[who.device].name, link != nullptr ? fmt::format(", at {},", link->connection->peer()) : "", who.stage + 1,
      cut_.size(), seconds(who.took), longest, seconds(options_.cluster.step_limit)));
  if (link == nullptr) return;
  link->device.reset();
  link->connection->abandon("its device hangs");
}

void ConductorProcess::nobody_moves(const protocol::NobodyMoves& still) {
  hooks_.log(fmt::format("no stage is at anything and none has come further for {:.0f} s: something was lost between them; all begin anew",
                         seconds(still.for_how_long)));
  if (++partings_ > most_times)
    end(world_failed(
        "the stages do not get on, and none of them is at anything: look at the links between the nodes; go on with --resume"));
}

void ConductorProcess::end(Result<protocol::Ending> how) {
  if (ended_) return;
  ended_ = true;
  ticker_.cancel();
  if (over_) over_(std::move(how));
}

}  // namespace motley::run
