#include "runtime/pipeline_layout.h"

#include <algorithm>
#include <utility>

namespace motley::runtime {

std::optional<std::uint32_t> PipelineLayout::stage_of(std::uint32_t device) const {
  const auto found = std::find_if(cut.begin(), cut.end(), [&](const pipeline::Stage& stage) { return stage.device == device; });
  if (found == cut.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - cut.begin());
}

PipelineLayout make_layout(const protocol::AssignStages& assignment, std::vector<store::StagePlace> places) {
  PipelineLayout layout;
  layout.generation = assignment.generation;
  layout.cut = assignment.cut;
  layout.places = std::move(places);
  layout.micro_batches = assignment.schedule.micro_batches;
  layout.allowed = assignment.allowed;
  layout.committed.assign(assignment.cut.size(), assignment.from);
  return layout;
}

wire::AssignStage assign_message(const AssignmentFacts& facts, std::uint32_t stage) {
  const protocol::AssignStages& assignment = facts.assignment;
  const pipeline::Stage& mine = assignment.cut[stage];
  const bool last = stage + 1 == assignment.cut.size();
  wire::AssignStage message;
  message.generation = assignment.generation;
  message.stage = stage;
  for (const pipeline::Stage& section : assignment.cut) message.sections.push_back({section.first, section.last, section.device});
  message.schedule = assignment.schedule;
  message.from = assignment.from;
  message.allowed = assignment.allowed;
  message.moments = facts.moments;
  message.next = last ? "" : facts.addresses[stage + 1];
  message.kept_bytes = pipeline::Sums(facts.problem.blocks).kept_bytes(mine.first, mine.last);
  message.parts_s = pipeline::parts_s(facts.problem, mine);
  message.training = facts.trained;
  message.before_key = stage > 0 ? facts.keys[stage - 1] : 0;
  message.next_key = facts.keys[stage];
  return message;
}

}  // namespace motley::runtime
