#include "sim/pipeline_numbers.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace motley::sim {

using plan::Part;

RealPipelineNumbers::RealPipelineNumbers(PipelineNumbersOptions options)
    : options_(std::move(options)), epochs_(options_.epoch_samples, options_.seed) {
  adopt(std::move(options_.stages));
}

void RealPipelineNumbers::adopt(std::vector<PipelineNumbersOptions::Stage> stages) {
  options_.stages = std::move(stages);
  stages_.clear();
  for (PipelineNumbersOptions::Stage& stage : options_.stages) {
    Stage& made = stages_.emplace_back();
    made.values = std::make_shared<const std::vector<float>>(std::move(stage.values));
    made.optimizer = std::make_unique<store::Optimizer>(options_.optimizer, stage.parameters);
  }
}

std::vector<float> RealPipelineNumbers::values() const {
  std::vector<float> all(options_.model_values);
  for (std::size_t s = 0; s < stages_.size(); ++s)
    for (const auto& piece : options_.stages[s].pieces)
      std::copy_n(stages_[s].values->begin() + static_cast<std::ptrdiff_t>(piece.in_stage), piece.count,
                  all.begin() + static_cast<std::ptrdiff_t>(piece.in_model));
  return all;
}

/// Parameters and the optimizer's state go with their blocks; a stage's moving norm starts anew, since its gradient is another one now.
void RealPipelineNumbers::recut(const plan::Cut& cut) {
  const std::vector<float> all = values();
  std::vector<float> first(options_.model_values);
  std::vector<float> second(options_.model_values);
  const std::uint64_t updates = stages_.front().optimizer->updates();
  bool has_second = false;
  for (std::size_t s = 0; s < stages_.size(); ++s)
    for (const auto& piece : options_.stages[s].pieces) {
      if (piece.in_stage >= options_.stages[s].parameters) continue;  // a statistic
      const auto scatter = [&](std::span<const float> state, std::vector<float>& to) {
        std::copy_n(state.begin() + static_cast<std::ptrdiff_t>(piece.in_stage), piece.count,
                    to.begin() + static_cast<std::ptrdiff_t>(piece.in_model));
      };
      scatter(stages_[s].optimizer->first(), first);
      if (stages_[s].optimizer->second().empty()) continue;
      scatter(stages_[s].optimizer->second(), second);
      has_second = true;
    }

  std::vector<PipelineNumbersOptions::Stage> stages = options_.remake(cut);
  std::vector<std::vector<float>> firsts;
  std::vector<std::vector<float>> seconds;
  for (auto& stage : stages) {
    std::uint64_t values = 0;
    for (const auto& piece : stage.pieces) values = std::max(values, piece.in_stage + piece.count);
    const auto gathered = [&](const std::vector<float>& from, std::uint64_t count) {
      std::vector<float> own(count);
      for (const auto& piece : stage.pieces)
        if (piece.in_stage < count)
          std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(piece.in_model), piece.count,
                      own.begin() + static_cast<std::ptrdiff_t>(piece.in_stage));
      return own;
    };
    stage.values = gathered(all, values);
    firsts.push_back(gathered(first, stage.parameters));
    seconds.push_back(has_second ? gathered(second, stage.parameters) : std::vector<float>{});
  }
  adopt(std::move(stages));
  for (std::size_t s = 0; s < stages_.size(); ++s) stages_[s].optimizer->restore(firsts[s], seconds[s], updates);
}

std::uint64_t RealPipelineNumbers::micro_samples(std::uint64_t micro) const {
  const std::uint64_t micros = options_.schedule.micro_batches;
  const std::uint64_t m = micro % micros;
  return (m + 1) * options_.samples / micros - m * options_.samples / micros;
}

/// Its positions in the permutations of the epochs, one mini-batch after the other.
std::vector<std::uint32_t> RealPipelineNumbers::samples_of(std::uint64_t micro) {
  const std::uint64_t micros = options_.schedule.micro_batches;
  std::uint64_t at = micro / micros * options_.samples + micro % micros * options_.samples / micros;
  std::uint64_t left = micro_samples(micro);
  Lease lease;
  while (left > 0) {
    const std::uint64_t epoch = at / options_.epoch_samples;
    const std::uint64_t first = at % options_.epoch_samples;
    const std::uint64_t count = std::min(left, options_.epoch_samples - first);
    lease.ranges.push_back({static_cast<std::uint32_t>(epoch), first, first + count});
    at += count;
    left -= count;
  }
  return epochs_.samples_of(lease);
}

double RealPipelineNumbers::rate(std::uint64_t mini) const { return options_.rates.rate(mini * options_.samples); }

double RealPipelineNumbers::softened(std::uint32_t stage, std::uint64_t mini) const {
  if (!options_.schedule.softens) return 1;
  constexpr double most = 0.5;
  constexpr double quarter = 0.25;
  const double micros = options_.schedule.micro_batches;
  const double late = std::min(micros, options_.schedule.most_held[stage] - 1.0) / micros;
  const double passed = static_cast<double>(mini) / (quarter * static_cast<double>(options_.mini_batches));
  return std::pow(1 + late, -most * (1 - std::min(passed, 1.0)));
}

void RealPipelineNumbers::begun(std::uint32_t stage, std::uint64_t micro, std::uint32_t late) {
  Stage& of = stages_[stage];
  if (late == 0 || !options_.schedule.predicts) {
    of.used[micro] = of.values;
    return;
  }
  if (!of.predicted) {
    const std::uint64_t mini = micro / options_.schedule.micro_batches;
    auto ahead = std::make_shared<std::vector<float>>(*of.values);
    const std::size_t parameters = options_.stages[stage].parameters;
    of.optimizer->look_ahead(std::span(*of.values).first(parameters), options_.optimizer.momentum, rate(mini) * softened(stage, mini),
                             std::span(*ahead).first(parameters));
    of.predicted = std::move(ahead);
  }
  of.used[micro] = of.predicted;
}

void RealPipelineNumbers::done(std::uint32_t stage, Part part, std::uint64_t micro) {
  Stage& of = stages_[stage];
  store::StageSource& source = *options_.stages[stage].source;
  switch (part) {
    case Part::forward: {
      const bool ends = stage == 0 || stage + 1 == stages_.size();
      Activation output;
      const store::Loss loss =
          source.forward(micro, *of.used.at(micro), ends ? samples_of(micro) : std::vector<std::uint32_t>{}, of.inputs[micro], output);
      diverged_ = diverged_ || !std::isfinite(loss.sum);
      of.inputs.erase(micro);
      if (stage + 1 < stages_.size()) stages_[stage + 1].inputs[micro] = std::move(output);
      break;
    }
    case Part::input: {
      Activation gradient;
      source.input_gradient(micro, of.output_gradients[micro], gradient);
      of.output_gradients.erase(micro);
      if (stage > 0) stages_[stage - 1].output_gradients[micro] = std::move(gradient);
      break;
    }
    case Part::weight: {
      std::vector<float>& sum = of.gradients[micro / options_.schedule.micro_batches];
      sum.resize(of.values->size());
      source.weight_gradient(micro, static_cast<double>(micro_samples(micro)) / static_cast<double>(options_.samples), sum);
      of.used.erase(micro);
      break;
    }
  }
}

void RealPipelineNumbers::clip(Stage& stage, std::vector<float>& gradient) const {
  constexpr double multiple = 1.5;
  constexpr double keep = 0.98;
  double squares = 0;
  for (const float g : gradient) squares += static_cast<double>(g) * static_cast<double>(g);
  const double norm = std::sqrt(squares);
  if (stage.norm == 0) stage.norm = norm;
  const double factor = norm > multiple * stage.norm ? multiple * stage.norm / norm : 1;
  if (factor < 1)
    for (float& g : gradient) g = static_cast<float>(g * factor);
  stage.norm = keep * stage.norm + (1 - keep) * factor * norm;
}

void RealPipelineNumbers::committed(std::uint32_t stage, std::uint64_t mini) {
  Stage& of = stages_[stage];
  const std::size_t parameters = options_.stages[stage].parameters;
  std::vector<float> gradient = std::move(of.gradients.at(mini));
  of.gradients.erase(mini);
  std::vector<float> changes(gradient.begin() + static_cast<std::ptrdiff_t>(parameters), gradient.end());
  gradient.resize(parameters);
  if (options_.schedule.clips) clip(of, gradient);
  // Of a smaller unit than the global batch the gradient counts for as much less.
  const double share = static_cast<double>(options_.samples) / static_cast<double>(options_.global_batch);
  if (share != 1)
    for (float& g : gradient) g = static_cast<float>(g * share);
  auto next = std::make_shared<std::vector<float>>(*of.values);
  of.optimizer->update(std::span(*next).first(parameters), gradient, rate(mini) * softened(stage, mini), options_.optimizer.momentum,
                       share);
  for (std::size_t i = 0; i < changes.size(); ++i) (*next)[parameters + i] += changes[i];
  of.values = std::move(next);
  of.predicted.reset();
}

PipelineNumbers::Evaluation RealPipelineNumbers::finished(std::uint64_t mini) {
  Evaluation evaluation;
  if (diverged_ || (mini + 1) % options_.evaluate_every == 0 || mini + 1 == options_.mini_batches) evaluation = options_.evaluate(values());
  evaluation.diverged = diverged_;
  return evaluation;
}

}  // namespace motley::sim
