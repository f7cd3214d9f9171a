// The real numbers of a simulated pipeline: every stage's parameters, what each micro-batch was computed with, and the updates.
//
// Rule: forward uses the newest parameters, or, where it runs ahead and the schedule predicts, w - rate*mu*v; its other parts use the same.
//   An update of stage s: g is the mean over the mini-batch, clipped per stage at 1.5 times its moving norm (.98) where the schedule clips;
//   then the optimizer's step, at the schedule's rate / (1 + d_s)^p where it softens: d_s = min(M, held_s - 1)/M is the share of
//   micro-batches that come late, p goes from .5 to 0 in the first quarter of training.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "policy/schedule.h"
#include "sim/pipeline_world.h"
#include "store/epochs.h"
#include "store/optimizer.h"
#include "store/stage_source.h"

namespace motley::sim {

struct PipelineNumbersOptions {
  /// Where a run of a stage's values lies in the whole model.
  struct Piece {
    std::uint64_t in_stage = 0;
    std::uint64_t in_model = 0;
    std::uint64_t count = 0;
  };
  struct Stage {
    std::unique_ptr<store::StageSource> source;
    std::vector<Piece> pieces;
    std::vector<float> values;     // to begin with
    std::uint64_t parameters = 0;  // of the values; the rest are statistics
  };
  std::vector<Stage> stages;
  /// Stages for another cut, without values.
  std::function<std::vector<Stage>(const plan::Cut&)> remake;
  std::uint64_t model_values = 0;  // of the whole model
  plan::Schedule schedule;
  policy::Schedule rates;
  store::OptimizerSpec optimizer;
  std::uint64_t mini_batches = 0;
  std::uint64_t samples = 0;       // of a mini-batch
  std::uint64_t global_batch = 0;  // that the rate is for
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
  void done(std::uint32_t stage, plan::Part part, std::uint64_t micro) override;
  void committed(std::uint32_t stage, std::uint64_t mini) override;
  void recut(const plan::Cut& cut) override;
  Evaluation finished(std::uint64_t mini) override;

  /// Of the whole model.
  [[nodiscard]] std::vector<float> values() const;

 private:
  using Values = std::shared_ptr<const std::vector<float>>;
  struct Stage {
    Values values;
    Values predicted;  // from them, if somebody has asked
    std::unique_ptr<store::Optimizer> optimizer;
    std::map<std::uint64_t, Values> used;                   // by micro-batch
    std::map<std::uint64_t, std::vector<float>> gradients;  // by mini-batch
    std::map<std::uint64_t, Activation> inputs;             // by micro-batch, from the stage before
    std::map<std::uint64_t, Activation> output_gradients;   // from the stage after
    double norm = 0;                                        // of the gradient, moving; 0: none yet
  };
  void adopt(std::vector<PipelineNumbersOptions::Stage> stages);
  [[nodiscard]] std::vector<std::uint32_t> samples_of(std::uint64_t micro);
  [[nodiscard]] std::uint64_t micro_samples(std::uint64_t micro) const;
  [[nodiscard]] double rate(std::uint64_t mini) const;
  [[nodiscard]] double softened(std::uint32_t stage, std::uint64_t mini) const;
  void clip(Stage& stage, std::vector<float>& gradient) const;

  PipelineNumbersOptions options_;
  store::Epochs epochs_;
  std::vector<Stage> stages_;
  bool diverged_ = false;
};

}  // namespace motley::sim
