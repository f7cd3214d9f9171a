// The conductor's process and time: who does not get on, and whether it did not attend itself.
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "protocol/trace_events.h"
#include "runtime/pipeline_chief_process.h"

namespace motley::runtime {
namespace {

constexpr std::chrono::milliseconds doubt{300};  // between who lost a neighbour and who has died
constexpr std::uint32_t max_peer_losses = 10;    // in a row: these nodes do not reach each other
constexpr std::uint32_t most_times = 10;         // in a row that nobody moves

}  // namespace

/// The ticker looks twice a heartbeat. If it did not for so long that somebody might be blamed for it, this process stood still, and what
/// others have sent us waits.
void PipelineChiefProcess::note_driver_alive() {
  const Instant now = clock_.now();
  const Duration missed = now - std::exchange(last_driven_, now);
  const Duration deadline = std::min(options_.cluster.silence_deadline, options_.cluster.step_limit);
  if (missed <= std::max(options_.cluster.heartbeat, deadline / 2)) return;
  for (auto& [connection, link] : links_) link.last_heard += missed;
  tell(protocol::DriverPaused{missed});
}

void PipelineChiefProcess::status(std::uint32_t device, const wire::StageStatus& reported) {
  const auto found = std::find_if(cut_.begin(), cut_.end(), [&](const pipeline::Stage& stage) { return stage.device == device; });
  if (found == cut_.end()) return;
  tell(protocol::StageReported{reported.generation, static_cast<std::uint32_t>(found - cut_.begin()), reported.done, reported.busy,
                               std::exchange(slices_moved_, false)});
}

void PipelineChiefProcess::expelled(const protocol::StageExpelled& who) {
  record_trace(Instant{trained()}, protocol::to_trace_event(who));
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

void PipelineChiefProcess::no_progress(const protocol::NoProgress& stuck) {
  hooks_.log(fmt::format("no stage is at anything and none has come further for {:.0f} s: something was lost between them; all begin anew",
                         seconds(stuck.for_how_long)));
  if (++peer_losses_ > most_times)
    end(world_failed(
        "the stages do not get on, and none of them is at anything: look at the links between the nodes; go on with --resume"));
}

void PipelineChiefProcess::end(Result<protocol::TrainingOutcome> how) {
  if (ended_) return;
  ended_ = true;
  ticker_.cancel();
  if (over_) over_(std::move(how));
}

/// Whoever has lost a neighbour cannot tell whether it died; that is heard here as well, and comes first.
void PipelineChiefProcess::peer_lost(Link& link, const wire::PeerLost& reported) {
  if (reported.generation != generation_ || link.peer_lost == generation_) return;  // it says so once
  link.peer_lost = generation_;
  auto timer = std::make_shared<boost::asio::steady_timer>(event_loop_, doubt);
  timer->async_wait([this, alive = alive_, timer, generation = reported.generation, why = wire::printable(reported.why),
                     node = options_.cluster.nodes[*link.device].name](const boost::system::error_code& cancelled) {
    if (cancelled || !*alive || ended_ || outcome_ || generation != generation_ || cut_.empty()) return;
    hooks_.log(fmt::format("{} and its neighbour have lost each other: {}", node, why));
    if (++peer_losses_ > max_peer_losses)
      return end(
          world_failed(fmt::format("{} does not reach its neighbour: {}; expected nodes that reach each other where --listen and "
                                   "--reach say",
                                   node, why)));
    tell(protocol::StagesDisconnected{generation});
  });
}

}  // namespace motley::runtime
