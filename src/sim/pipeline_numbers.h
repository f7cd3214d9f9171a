// Real numbers of a simulated pipeline: a store::StageReplica for every stage, and the activations and gradients in flight between them.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/stage_source.h"
#include "policy/lr_schedule.h"
#include "sim/pipeline_world.h"
#include "store/optimizer.h"
#include "store/stage_replica.h"
#include "store/staged_model.h"

namespace motley::sim {

struct PipelineNumbersOptions {
  struct Stage {
    std::unique_ptr<StageSource> source;
    store::StagePlace place;  // in the whole model
  };
  std::function<std::vector<Stage>(const pipeline::Cut&)> make;
  store::StagedModel model;  // initial
  policy::LrSchedule rates;
  OptimizerSpec optimizer;
  std::uint64_t mini_batches = 0;
  std::uint64_t samples = 0;  // of a mini-batch
  std::uint64_t total_samples = no_end;
  std::uint64_t global_batch = 0;  // for which the rate was chosen
  std::uint64_t epoch_samples = 0;
  std::uint64_t seed = 0;
  std::uint64_t evaluate_every = 1;  // mini-batches
  /// Accuracy and loss of the whole model.
  std::function<PipelineNumbers::Evaluation(std::span<const float>)> evaluate;
};

class RealPipelineNumbers final : public PipelineNumbers {
 public:
  explicit RealPipelineNumbers(PipelineNumbersOptions options);
  void begun(std::uint32_t stage, std::uint64_t micro, std::uint32_t late) override;
  void done(std::uint32_t stage, pipeline::Part part, std::uint64_t micro) override;
  void committed(std::uint32_t stage, std::uint64_t mini) override;
  void submit_state(std::uint32_t stage, std::uint64_t mini_batches) override;
  Evaluation kept(std::uint64_t mini_batches) override;
  void assign_stages(const pipeline::Cut& cut, const pipeline::Schedule& schedule, std::uint64_t from) override;
  [[nodiscard]] bool diverged() const override { return diverged_; }

  /// The whole model of the last snapshot.
  [[nodiscard]] const std::vector<float>& values() const { return options_.model.values; }

 private:
  /// Activations and gradients that a stage has received, by micro-batch.
  struct Inbox {
    std::map<std::uint64_t, Activation> inputs;            // from the stage before
    std::map<std::uint64_t, Activation> output_gradients;  // from the stage after
  };
  [[nodiscard]] double rate(std::uint32_t stage, std::uint64_t mini) const;

  PipelineNumbersOptions options_;
  pipeline::Schedule schedule_;
  std::vector<store::StageReplica> replicas_;
  std::vector<store::StagePlace> places_;                        // by stage
  std::vector<Inbox> inboxes_;                                   // by stage
  std::map<std::uint64_t, store::StagedModel> state_submitted_;  // by mini-batches; incomplete
  bool diverged_ = false;
};

}  // namespace motley::sim
