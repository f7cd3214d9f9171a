#include "engine/pipeline_simulation.h"

#include <fmt/format.h>

#include "base/check.h"
#include "engine/pipeline_training.h"
#include "sim/pipeline_numbers.h"
#include "sim/pipeline_world.h"

namespace motley::engine {
namespace {

/// The real gradients of a run. The whole model is kept for evaluations.
struct Model {
  std::unique_ptr<learn::Learner> whole;
  std::unique_ptr<sim::RealPipelineNumbers> numbers;
};

Result<Model> make_model(const config::Job& job, const Material& material, std::uint64_t seed, const PipelineTraining& training) {
  Model model;
  auto whole = learn::make_learner(job.model, material.data);
  if (!whole) return whole.error();
  model.whole = std::move(*whole);
  std::vector<float> initial(model.whole->shape().values());
  model.whole->initialize(seed, initial);
  const auto make = [&job, &material, whole_model = model.whole.get()](const pipeline::Cut& cut) {
    auto learners = make_stage_learners(job, material, cut);
    check(learners.ok(), "a model that can be made can be cut");
    std::vector<sim::PipelineNumbersOptions::Stage> stages;
    for (auto& learner : *learners) {
      auto place = place_in(whole_model->shape(), learner->shape());
      stages.push_back({std::move(learner), std::move(place)});
    }
    return stages;
  };
  sim::PipelineNumbersOptions numbers{.make = make,
                                      .model = {std::move(initial), {}, {}, 0},
                                      .rates = *training.rates,
                                      .optimizer = training.optimizer,
                                      .mini_batches = training.batches.count,
                                      .samples = training.batches.samples,
                                      .total_samples = training.batches.total,
                                      .global_batch = job.global_batch,
                                      .epoch_samples = material.epoch_samples,
                                      .seed = seed,
                                      .evaluate_every = training.batches.evaluate_every,
                                      .evaluate = {}};
  numbers.evaluate = [whole_model = model.whole.get()](std::span<const float> values) {
    const StepResult result = whole_model->evaluate(values);
    const double samples = static_cast<double>(result.samples);
    return sim::PipelineNumbers::Evaluation{true, static_cast<double>(result.correct) / samples, result.loss_sum / samples};
  };
  model.numbers = std::make_unique<sim::RealPipelineNumbers>(std::move(numbers));
  return model;
}

}  // namespace

Result<RunResult> simulate_pipeline(const config::Job& job, const Material& material, const SimulationOptions& options) {
  auto training = make_pipeline_training(job, material, options.strategy, options.label);
  if (!training) return training.error();
  sim::NoPipelineNumbers none;
  Model model;
  if (!job.timing_only) {
    auto made = make_model(job, material, options.seed, *training);
    if (!made) return made.error();
    model = std::move(*made);
  }

  RunResult result;
  trace::Writer writer;
  trace::Pipeline seen = training->lens();
  Progress progress(options.progress, training->batches.total);
  std::vector<trace::Sink*> sinks{&writer, &result.summary, &seen, &progress};
  if (options.also != nullptr) sinks.push_back(options.also);
  trace::Tee tee(std::move(sinks));
  const Batches& batches = training->batches;
  sim::PipelineWorld world({.cluster = job.cluster,
                            .problem = training->plan.problem,
                            .cut = training->plan.cut,
                            .reschedule = training->reschedule,
                            .repartition = training->repartition,
                            .snapshot_every = batches.evaluate_every,
                            .mini_batches = batches.count,
                            .samples = batches.samples,
                            .total_samples = batches.total,
                            .slices = job.pipeline.slices,
                            .seed = options.seed},
                           model.numbers ? static_cast<sim::PipelineNumbers&>(*model.numbers) : none, tee);
  const sim::PipelineOutcome outcome = world.run();
  if (outcome.not_enough_devices)
    return world_failed(
        fmt::format("{}, seed {}: the pipeline stands still after {} mini-batches, at {:.1f} s: the nodes that are left cannot hold the "
                    "model and none comes; give them more memory, or let one join",
                    options.label, options.seed, outcome.mini_batches, seconds(outcome.ended.time_since_epoch())));
  result.outcome = training->outcome_of(outcome.mini_batches, material.epoch_samples);
  result.outcome.why = outcome.diverged ? protocol::EndReason::diverged : protocol::EndReason::every_sample_counted;
  result.outcome.ended = outcome.ended;
  result.outcome.bytes_pushed = outcome.bytes;
  result.label = options.label;
  result.seed = options.seed;
  result.trace_sha256 = writer.finish();
  result.sum_of_parts = training->sum_of_parts;
  if (model.numbers) result.values = model.numbers->values();
  result.pipeline = training->figures(seen, outcome.peak_stash_bytes);
  return result;
}

}  // namespace motley::engine
