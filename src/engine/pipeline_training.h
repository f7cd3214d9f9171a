// A job turned into what both worlds need to train it as a pipeline: plan, schedules, batches, rates, stages. Neither virtual nor real.
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

/// How the mini-batches of a run are made.
struct Batches {
  std::uint64_t samples = 0;  // of a mini-batch, which is one update; the last has what is left
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

  /// Sees a run's trace; keeps pictures of a few mini-batches from the middle.
  [[nodiscard]] trace::Pipeline lens() const;
  [[nodiscard]] PipelineFigures figures(const trace::Pipeline& seen, const std::vector<double>& peak_stash_bytes) const;
  /// But for its time and why.
  [[nodiscard]] protocol::TrainingOutcome outcome_of(std::uint64_t mini_batches, std::uint64_t epoch_samples) const;
};

/// Fails when the model cannot be made or cut, or the job asks for what no pipeline can do. `label` stands for the strategy in errors.
Result<PipelineTraining> make_pipeline_training(const config::Job& job, const Material& material, const policy::StrategySpec& strategy,
                                                const std::string& label);

Result<std::vector<std::unique_ptr<learn::StageLearner>>> make_stage_learners(const config::Job& job, const Material& material,
                                                                              const pipeline::Cut& cut);
/// Where a stage's tensors lie in the whole model.
[[nodiscard]] store::StagePlace place_in(const ModelShape& whole, const ModelShape& stage);
/// The same for every stage of a cut.
[[nodiscard]] std::vector<store::StagePlace> stage_places(const config::Job& job, const Material& material, const ModelShape& whole,
                                                          const pipeline::Cut& cut);
/// Of the job's text without [pipeline] and [cluster]: whoever learns the same may go on with what was learned, however it is cut.
[[nodiscard]] std::string learning_sha256(const std::string& job_text);

}  // namespace motley::engine
