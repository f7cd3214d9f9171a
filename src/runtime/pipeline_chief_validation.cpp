// The pipeline chief's process and what nodes may send it: each connection is a newcomer or one of the job's nodes, and speaks for the
// stage that was laid on that node in this generation. Whatever does not pass closes its connection, before it reaches the machine or a
// model.
#include <fmt/format.h>

#include <algorithm>

#include "base/match.h"
#include "runtime/pipeline_chief_process.h"
#include "wire/frame.h"

namespace motley::runtime {
namespace {

constexpr int silent_heartbeats = 3;  // a stage sends two in the time of each: whoever misses so many is dead, or as good as dead

}  // namespace

wire::Objection PipelineChiefProcess::objection(const Link& link, wire::Lane lane, const wire::Message& message) const {
  if (auto why = wire::objection(link.is, lane, message)) return why;
  if (const auto* reported = std::get_if<wire::StageHello>(&message)) return objection_to_node(link, *reported);
  if (std::holds_alternative<wire::JoinRequest>(message) || std::holds_alternative<wire::Heartbeat>(message)) return {};
  if (!link.device) return fmt::format("its {} comes before it is one of the nodes", wire::name_of(message));
  const auto of_now = [&](std::uint32_t generation) -> wire::Objection {
    if (generation <= generation_) return {};
    return fmt::format("its {} is of layout {}, the newest is {}", wire::name_of(message), generation, generation_);
  };
  return std::visit(
      match{[&](const wire::Committed& m) {
              auto why = objection_to_stage(link, m.generation, m.stage);
              return why ? why : objection_to_progress(m);
            },
            [&](const wire::StageSlice& m) {
              auto why = objection_to_stage(link, m.generation, m.stage);
              return why ? why : objection_to_slice(m);
            },
            [&](const wire::PeerLost& m) {
              auto why = of_now(m.generation);
              const auto is_it = [&](const pipeline::Stage& stage) { return stage.device == *link.device; };
              if (!why && m.generation == generation_ && std::none_of(cut_.begin(), cut_.end(), is_it))
                why = "it has lost a neighbour and is no stage";
              return why;
            },
            [&](const wire::StageAssigned& m) { return of_now(m.generation); },
            [&](const wire::StageStatus& m) { return of_now(m.generation); }, [](const auto&) -> wire::Objection { return {}; }},
      message);
}

/// A node is who came first, for as long as that one is heard: nobody is put out by a newcomer. A stage that died and is back before that
/// was noticed is sent away too, and comes again until the silence of its former self has been long enough.
wire::Objection PipelineChiefProcess::objection_to_node(const Link& link, const wire::StageHello& reported) const {
  if (link.device || reported.node != link.name)
    return fmt::format("it said that it was \"{}\" and now that it is \"{}\"", link.name, reported.node);
  const auto& nodes = options_.cluster.nodes;
  const auto node = std::find_if(nodes.begin(), nodes.end(), [&](const cluster::Node& n) { return n.name == reported.node; });
  if (node == nodes.end())
    return fmt::format("found a node called \"{}\", expected one of the job's: a model is cut across the nodes that it describes",
                       reported.node);
  if (const auto address = transport::parse_address(reported.address); !address) return address.error().message;
  const Link* before = link_of_device(static_cast<std::uint32_t>(node - nodes.begin()));
  if (before == nullptr) return {};
  const Duration silent = clock_.now() - before->last_heard;
  if (silent > silent_heartbeats * options_.cluster.heartbeat) return {};
  return fmt::format("{} is here already, at {}, and was heard {:.1f} s ago", reported.node, before->address, seconds(silent));
}

/// What is of an earlier layout is on its way still, and counts for nothing.
wire::Objection PipelineChiefProcess::objection_to_stage(const Link& link, std::uint32_t generation, std::uint32_t stage) const {
  if (generation < generation_ || (generation == generation_ && cut_.empty())) return {};
  if (generation == generation_ && stage < cut_.size() && cut_[stage].device == *link.device) return {};
  return fmt::format("it speaks as stage {} of layout {}, which it is not", stage, generation);
}

wire::Objection PipelineChiefProcess::objection_to_progress(const wire::Committed& reported) const {
  if (reported.generation != generation_ || cut_.empty()) return {};
  const std::uint64_t before = committed_[reported.stage], expected = before + 1;
  if (reported.mini_batches != expected || expected > allowed_)
    return fmt::format("stage {} has committed {} mini-batches, expected {} of {} that are allowed", reported.stage, reported.mini_batches,
                       expected, allowed_);
  // What it tells waits in memory until the others have told as much.
  const std::uint64_t most = most_parts(allowed_, before, micro_batches_);
  if (reported.parts.size() > most)
    return fmt::format("stage {} tells of {} parts at once, expected at most {}: three of each micro-batch that it may have begun",
                       reported.stage, reported.parts.size(), most);
  for (const wire::PartRecord& did : reported.parts)
    if (did.micro / micro_batches_ < before || did.micro / micro_batches_ >= allowed_)
      return fmt::format("stage {} tells of micro-batch {}, expected one of mini-batches {} to {}", reported.stage, did.micro, before + 1,
                         allowed_);
  return {};
}

wire::Objection PipelineChiefProcess::objection_to_slice(const wire::StageSlice& slice) const {
  if (slice.generation != generation_ || slice.mini_batches <= allowed_) return {};
  return fmt::format("stage {} hands in mini-batch {} of {} that are allowed", slice.stage, slice.mini_batches, allowed_);
}

/// With the reason, which is told once: a connection takes its time to close.
void PipelineChiefProcess::expel(Link& link, const std::string& why) {
  if (std::exchange(link.sent_away, true)) return;
  const std::string& peer = link.connection->peer();
  const std::string sentence = fmt::format("sent {} away: {}", link.name.empty() ? peer : fmt::format("{} at {}", link.name, peer), why);
  link.device ? hooks_.log(sentence) : untrusted_log_.say(sentence);
  link.connection->close(why);
}

/// Nodes that prepare send a Heartbeat meanwhile; of stages another deadline knows.
void PipelineChiefProcess::expel_silent_pending(Instant now) {
  for (auto& [connection, link] : links_)
    if (!link.device && now - link.last_heard > options_.join_deadline)
      expel(link, fmt::format("it is no node of the pipeline and has sent nothing for {:.0f} s", seconds(options_.join_deadline)));
}

}  // namespace motley::runtime
