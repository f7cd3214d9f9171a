#include "sim/pipeline_numbers.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace motley::sim {

using pipeline::Part;

RealPipelineNumbers::RealPipelineNumbers(PipelineNumbersOptions options) : options_(std::move(options)) {}

/// A stage's moving norm starts anew, since its gradient has other components.
void RealPipelineNumbers::assign_stages(const pipeline::Cut& cut, const pipeline::Schedule& schedule, std::uint64_t) {
  schedule_ = schedule;
  replicas_.clear();
  places_.clear();
  state_submitted_.clear();
  std::vector<PipelineNumbersOptions::Stage> stages = options_.make(cut);
  inboxes_.assign(stages.size(), {});
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const store::StageReplicaOptions replica{.optimizer = options_.optimizer,
                                             .parameters = stages[s].place.parameters,
                                             .micro_batches = schedule_.micro_batches,
                                             .samples = options_.samples,
                                             .total_samples = options_.total_samples,
                                             .global_batch = options_.global_batch,
                                             .epoch_samples = options_.epoch_samples,
                                             .seed = options_.seed,
                                             .reads_samples = s == 0 || s + 1 == stages.size(),
                                             .predicts = schedule_.predicts,
                                             .clips = schedule_.clips};
    replicas_.emplace_back(replica, std::move(stages[s].source), options_.model.part(stages[s].place));
    places_.push_back(std::move(stages[s].place));
  }
}

void RealPipelineNumbers::submit_state(std::uint32_t stage, std::uint64_t mini_batches) {
  store::StagedModel& model = state_submitted_[mini_batches];
  model.values.resize(options_.model.values.size());
  model.put(places_[stage], replicas_[stage].part());
}

PipelineNumbers::Evaluation RealPipelineNumbers::kept(std::uint64_t mini_batches) {
  options_.model = std::move(state_submitted_.at(mini_batches));
  state_submitted_.erase(state_submitted_.begin(), state_submitted_.upper_bound(mini_batches));
  if (mini_batches % options_.evaluate_every != 0 && mini_batches != options_.mini_batches) return {};
  return options_.evaluate(options_.model.values);
}

double RealPipelineNumbers::rate(std::uint32_t stage, std::uint64_t mini) const {
  return options_.rates.rate(mini * options_.samples) * pipeline::softening(schedule_, stage, mini, options_.mini_batches);
}

void RealPipelineNumbers::begun(std::uint32_t stage, std::uint64_t micro, std::uint32_t late) {
  replicas_[stage].begin(micro, late, rate(stage, micro / schedule_.micro_batches));
}

void RealPipelineNumbers::done(std::uint32_t stage, Part part, std::uint64_t micro) {
  store::StageReplica& replica = replicas_[stage];
  Inbox& own = inboxes_[stage];
  switch (part) {
    case Part::forward: {
      Activation output;
      const StepResult loss = replica.forward(micro, own.inputs[micro], output);
      diverged_ = diverged_ || !std::isfinite(loss.loss_sum);
      own.inputs.erase(micro);
      if (stage + 1 < replicas_.size()) inboxes_[stage + 1].inputs[micro] = std::move(output);
      break;
    }
    case Part::input: {
      Activation gradient;
      replica.input_gradient(micro, own.output_gradients[micro], gradient);
      own.output_gradients.erase(micro);
      if (stage > 0) inboxes_[stage - 1].output_gradients[micro] = std::move(gradient);
      break;
    }
    case Part::weight: replica.weight_gradient(micro); break;
  }
}

void RealPipelineNumbers::committed(std::uint32_t stage, std::uint64_t mini) { replicas_[stage].commit(mini, rate(stage, mini)); }

}  // namespace motley::sim
