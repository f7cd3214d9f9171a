// The parameters of one pipeline stage: runs the passes of micro-batches, keeps the weight versions that they still need, and applies
// updates. The simulator and the real process use the same code, so that both compute the same bits.
//
// Rule: forward uses the newest parameters or, if it runs ahead and the stage predicts, w - rate*mu*v; backward uses the same as its
// forward.
//   An update: g is the mean over the mini-batch, clipped at clip_multiple times its moving norm if the stage clips; then the optimizer's
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
  std::uint64_t total_samples = no_end;  // of the training: the last mini-batch has the rest
  std::uint64_t global_batch = 0;        // samples that the learning rate is meant for
  std::uint64_t epoch_samples = 0;
  std::uint64_t seed = 0;
  bool reads_samples = false;  // true for the first and the last stage
  bool predicts = false;       // forward that runs ahead uses predicted weights
  bool clips = false;
};

/// One owner thread. Micro-batch k belongs to mini-batch k / micro_batches (base/batching.h). A smaller mini-batch has proportionally less
/// weight.
class StageReplica {
 public:
  using Values = std::shared_ptr<const std::vector<float>>;

  StageReplica(const StageReplicaOptions& options, std::unique_ptr<StageSource> source, StagePart part);

  /// Fixes the parameters of a micro-batch before its forward: the current ones, or, if `late` > 0 updates come before its own and the
  /// stage predicts, those that momentum leads to at `rate`.
  void begin(std::uint64_t micro, std::uint32_t late, double rate);
  StepResult forward(std::uint64_t micro, const Activation& input, Activation& output);
  void input_gradient(std::uint64_t micro, const Activation& output_gradient, Activation& input_gradient);
  void weight_gradient(std::uint64_t micro);
  /// Applies this mini-batch, all of whose weight gradients have been computed.
  void commit(std::uint64_t mini, double rate);

  [[nodiscard]] const Values& values() const { return values_; }
  /// The state that another process needs to continue, except the moving norm of clipping, which starts again.
  [[nodiscard]] StagePart part() const;
  /// Micro-batches whose parameters are still needed, and the number of older versions that these are.
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
  Values predicted_;  // from values_; null: not computed
  Optimizer optimizer_;
  std::map<std::uint64_t, Values> used_;                   // by micro-batch
  std::map<std::uint64_t, std::vector<float>> gradients_;  // by mini-batch
  double norm_ = 0;                                        // of the gradient, moving; 0: none yet
};

}  // namespace motley::store
