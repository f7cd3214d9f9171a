// One stage of a pipeline, as numbers: its parameters, what each micro-batch was computed with, and the updates. The same code in both
// worlds, so that a simulated and a real stage compute the same bits.
//
// Rule: forward uses the newest parameters, or, where it runs ahead and the stage predicts, w - rate*mu*v; its other parts use the same.
//   An update: g is the mean over the mini-batch, clipped at 1.5 times its moving norm (.98) where the stage clips; then the optimizer's
//   step.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/activation.h"
#include "base/batching.h"
#include "base/stage_source.h"
#include "store/epochs.h"
#include "store/optimizer.h"
#include "store/staged_model.h"

namespace motley::store {

struct StageReplicaOptions {
  OptimizerSpec optimizer;
  std::uint64_t parameters = 0;          // of the values; the rest are statistics
  std::uint32_t micro_batches = 1;       // of a mini-batch
  std::uint64_t samples = 0;             // of a mini-batch
  std::uint64_t total_samples = no_end;  // of the training: the last mini-batch has what is left
  std::uint64_t global_batch = 0;        // that the rate is for
  std::uint64_t epoch_samples = 0;
  std::uint64_t seed = 0;
  bool reads_samples = false;  // the first stage and the last
  bool predicts = false;
  bool clips = false;
};

/// One owner thread. Micro-batch k belongs to mini-batch k / micro_batches (base/batching.h). A smaller mini-batch counts as much less.
class StageReplica {
 public:
  using Values = std::shared_ptr<const std::vector<float>>;

  StageReplica(const StageReplicaOptions& options, std::unique_ptr<StageSource> source, StagePart part);

  /// A forward is about to begin: its parameters are those of now, or where momentum will have led at `rate` when it is `late`.
  void begin(std::uint64_t micro, std::uint32_t late, double rate);
  StepResult forward(std::uint64_t micro, const Activation& input, Activation& output);
  void input_gradient(std::uint64_t micro, const Activation& output_gradient, Activation& input_gradient);
  void weight_gradient(std::uint64_t micro);
  /// All weight gradients of this mini-batch are there.
  void commit(std::uint64_t mini, double rate);

  [[nodiscard]] const Values& values() const { return values_; }
  /// All that whoever goes on from here needs, but for the moving norm of clipping, which begins anew.
  [[nodiscard]] StagePart part() const;
  /// Micro-batches whose parameters are still needed, and how many versions of them beside the newest.
  [[nodiscard]] std::size_t kept() const { return used_.size(); }
  [[nodiscard]] std::size_t old_versions() const;

 private:
  [[nodiscard]] const std::vector<std::uint32_t>& samples_of(std::uint64_t micro);
  void clip(std::vector<float>& gradient);

  StageReplicaOptions options_;
  Batching batching_;
  std::unique_ptr<StageSource> source_;
  Epochs epochs_;
  Values values_;
  Values predicted_;  // from them, if somebody has asked
  Optimizer optimizer_;
  std::map<std::uint64_t, Values> used_;                   // by micro-batch
  std::map<std::uint64_t, std::vector<float>> gradients_;  // by mini-batch
  double norm_ = 0;                                        // of the gradient, moving; 0: none yet
};

}  // namespace motley::store
