#include "runtime/pipeline_chief_validation.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/match.h"
#include "runtime/stage_times.h"
#include "transport/address.h"
#include "wire/frame.h"

namespace motley::runtime {
namespace {

constexpr int silent_heartbeats = 3;  // a stage sends two in each heartbeat period: after three it is dead or hangs

/// A node is the process that came first, as long as that one sends heartbeats. A stage that died and reconnects before its silence was
/// noticed is refused and connects again.
wire::Objection objection_to_node(const StagePeer& from, const wire::StageHello& reported, const PipelineChiefFacts& facts) {
  if (from.device || reported.node != from.name) return fmt::format("its node was \"{}\" and is now \"{}\"", from.name, reported.node);
  const auto device = device_called(reported.node, facts.cluster);
  if (!device)
    return fmt::format("found a node called \"{}\", expected one of the job's: a model is cut across the nodes that it describes",
                       reported.node);
  if (const auto address = transport::parse_address(reported.address); !address) return address.error().message;
  const StagePeer* before = peer_of_device(facts.peers, *device);
  if (before == nullptr) return {};
  const Duration silent = facts.now - before->last_contact;
  if (silent > silent_heartbeats * facts.cluster.heartbeat) return {};
  return fmt::format("{} is here already, at {}, and sent a message {:.1f} s ago", reported.node, before->listens, seconds(silent));
}

/// Messages of earlier generations may still be in flight and are ignored.
wire::Objection objection_to_stage(const StagePeer& from, std::uint32_t generation, std::uint32_t stage, const PipelineLayout& layout) {
  if (generation < layout.generation || (generation == layout.generation && !layout.assigned())) return {};
  if (generation == layout.generation && layout.stage_of(*from.device) == stage) return {};
  return fmt::format("it speaks as stage {} of generation {}, which it is not", stage, generation);
}

wire::Objection objection_to_progress(const wire::Committed& reported, const PipelineLayout& layout) {
  if (reported.generation != layout.generation || !layout.assigned()) return {};
  const std::uint64_t before = layout.committed[reported.stage], expected = before + 1;
  if (reported.mini_batches != expected || expected > layout.allowed)
    return fmt::format("stage {} has committed {} mini-batches, expected {} of {} that are allowed", reported.stage, reported.mini_batches,
                       expected, layout.allowed);
  // The trace keeps these parts in memory until the other stages have reported as far.
  const std::uint64_t most = most_parts(layout.allowed, before, layout.micro_batches);
  if (reported.parts.size() > most)
    return fmt::format("stage {} reports {} parts at once, expected at most {}: three of each micro-batch that it may have begun",
                       reported.stage, reported.parts.size(), most);
  for (const wire::PartRecord& part : reported.parts) {
    const std::uint64_t mini_batch = part.micro / layout.micro_batches;
    if (mini_batch < before || mini_batch >= layout.allowed)
      return fmt::format("stage {} reports micro-batch {}, expected one of mini-batches {} to {}", reported.stage, part.micro, before + 1,
                         layout.allowed);
  }
  return {};
}

wire::Objection objection_to_slice(const wire::StageSlice& slice, const PipelineLayout& layout) {
  if (slice.generation != layout.generation || slice.mini_batches <= layout.allowed) return {};
  return fmt::format("stage {} submits its part after mini-batch {}, {} are allowed", slice.stage, slice.mini_batches, layout.allowed);
}

}  // namespace

wire::Objection objection(const StagePeer& from, wire::Lane lane, const wire::Message& message, const PipelineChiefFacts& facts) {
  if (auto why = wire::objection(from.role, lane, message)) return why;
  if (const auto* reported = std::get_if<wire::StageHello>(&message)) return objection_to_node(from, *reported, facts);
  if (std::holds_alternative<wire::JoinRequest>(message) || std::holds_alternative<wire::Heartbeat>(message)) return {};
  if (!from.device) return fmt::format("its {} comes before its StageHello", wire::name_of(message));
  const PipelineLayout& layout = facts.layout;
  const auto not_newer = [&](std::uint32_t generation) -> wire::Objection {
    if (generation <= layout.generation) return {};
    return fmt::format("its {} is of generation {}, the newest is {}", wire::name_of(message), generation, layout.generation);
  };
  return std::visit(
      match{[&](const wire::Committed& m) {
              auto why = objection_to_stage(from, m.generation, m.stage, layout);
              return why ? why : objection_to_progress(m, layout);
            },
            [&](const wire::StageSlice& m) {
              auto why = objection_to_stage(from, m.generation, m.stage, layout);
              return why ? why : objection_to_slice(m, layout);
            },
            [&](const wire::PeerLost& m) {
              auto why = not_newer(m.generation);
              if (!why && m.generation == layout.generation && !layout.stage_of(*from.device))
                why = "it has lost a neighbour and computes no stage";
              return why;
            },
            [&](const wire::StageAssigned& m) { return not_newer(m.generation); },
            [&](const wire::StageStatus& m) { return not_newer(m.generation); }, [](const auto&) -> wire::Objection { return {}; }},
      message);
}

std::optional<std::uint32_t> device_called(const std::string& name, const cluster::Spec& cluster) {
  const auto found = std::find_if(cluster.nodes.begin(), cluster.nodes.end(), [&](const cluster::Node& node) { return node.name == name; });
  if (found == cluster.nodes.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - cluster.nodes.begin());
}

}  // namespace motley::runtime
