#include "runtime/stage_setup.h"

#include "transport/address.h"

namespace motley::runtime {
namespace {

pipeline::Cut cut_of(const wire::AssignStage& message) {
  pipeline::Cut cut;
  for (const wire::Section& section : message.sections) cut.push_back({section.first, section.last, section.node});
  return cut;
}

}  // namespace

wire::Objection objection_to_assignment(const wire::AssignStage& message, const StageSetup& setup) {
  const pipeline::Cut cut = cut_of(message);
  if (!pipeline::is_valid_cut(setup.problem, cut) || cut[message.stage].device != setup.node.value ||
      message.schedule.micro_batches > setup.replica.samples || message.allowed > setup.mini_batches)
    return "its assignment is no pipeline of this job with this node as the stage";
  if (message.next.empty()) return {};
  const auto address = transport::parse_address(message.next);
  return address ? wire::Objection{} : wire::Objection{address.error().message};
}

StageAssignment::StageAssignment(const wire::AssignStage& assigned, const StageSetup& setup)
    : message(assigned), cut(cut_of(assigned)), schedule{assigned.schedule, {}, 0}, place(setup.place(cut, assigned.stage)) {}

std::uint32_t StageAssignment::state_kinds(const StageSetup& setup) const {
  if (!message.moments) return 1;
  return setup.replica.optimizer.kind == OptimizerKind::adamw ? 3 : 2;
}

double StageAssignment::learning_rate(std::uint64_t mini, const StageSetup& setup) const {
  return setup.rates->rate(mini * setup.replica.samples) * pipeline::softening(schedule, message.stage, mini, setup.mini_batches);
}

}  // namespace motley::runtime
