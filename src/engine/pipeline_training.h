// PipelineTraining: plan, schedules, batches, learning rates and stages of a job, for the simulator and for real processes alike.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/pipeline_planning.h"
#include "engine/run_result.h"
#include "learn/stage_learner.h"
#include "pipeline/schedule.h"
#include "policy/lr_schedule.h"
#include "policy/strategies.h"
#include "store/optimizer.h"
#include "store/staged_model.h"
#include "trace/pipeline.h"

namespace motley::engine {

/// How the samples of a run are divided into mini-batches.
struct Batches {
  std::uint64_t samples = 0;  // per mini-batch, which is one update; the last has the rest
  std::uint64_t total = 0;    // samples of the training
  std::uint64_t count = 0;
  std::uint64_t evaluate_every = 1;
};

[[nodiscard]] Batches batches_of(const config::Job& job, const Material& material, const policy::StrategySpec& strategy);
[[nodiscard]] policy::LrSchedule rates_of(const config::Job& job, const Material& material, const policy::StrategySpec& strategy,
                                          const Batches& batches);
[[nodiscard]] OptimizerSpec optimizer_of(const config::Job& job, const policy::StrategySpec& strategy);

struct PipelineTraining {
  PipelinePlan plan;
  Batches batches;
  std::function<pipeline::Schedule(const pipeline::Problem&, const pipeline::Cut&)> reschedule;
  std::function<std::optional<pipeline::Cut>(const pipeline::Problem&)> repartition;  // for the devices of the problem
  std::optional<policy::LrSchedule> rates;
  OptimizerSpec optimizer;
  double sum_of_parts = 0;                  // samples per second
  std::vector<double> planned_stash_bytes;  // by stage

  /// A sink for a run's trace, which keeps a few mini-batches from the middle in detail.
  [[nodiscard]] trace::Pipeline lens() const;
  [[nodiscard]] PipelineFigures figures(const trace::Pipeline& seen, const std::vector<double>& peak_stash_bytes) const;
  /// Without its time and reason.
  [[nodiscard]] protocol::TrainingOutcome outcome_of(std::uint64_t mini_batches, std::uint64_t epoch_samples) const;
};

/// Fails when the model cannot be made or cut, or the job has settings that pipelines do not support. `label` names the strategy in errors.
Result<PipelineTraining> make_pipeline_training(const config::Job& job, const Material& material, const policy::StrategySpec& strategy,
                                                const std::string& label);

Result<std::vector<std::unique_ptr<learn::StageLearner>>> make_stage_learners(const config::Job& job, const Material& material,
                                                                              const pipeline::Cut& cut);
/// The place of a stage's tensors in the whole model.
[[nodiscard]] store::StagePlace place_in(const ModelShape& whole, const ModelShape& stage);
/// The same for every stage of a cut.
[[nodiscard]] std::vector<store::StagePlace> stage_places(const config::Job& job, const Material& material, const ModelShape& whole,
                                                          const pipeline::Cut& cut);
/// Hash of the job's text without [pipeline] and [cluster]: a run with the same hash may resume from another cut's checkpoint.
[[nodiscard]] std::string learning_sha256(const std::string& job_text);

}  // namespace motley::engine
