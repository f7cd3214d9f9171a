// A run of a model's blocks: one stage of a pipeline. Like a learner, but each micro-batch comes in three parts that may lie apart, and
// what goes from stage to stage is a tensor. Torch-free header.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/activation.h"
#include "base/result.h"
#include "learn/learner.h"

namespace motley::learn {

/// Not thread-safe: one owner thread. Micro-batches are told apart by a number of the caller's choice.
/// The parts of one come in order: forward, input gradient, weight gradient; those of different ones in any.
class StageLearner {
 public:
  virtual ~StageLearner() = default;
  /// Its own tensors, from offset 0: parameters, then statistics. Names and block numbers are the whole model's.
  [[nodiscard]] virtual const ModelShape& shape() const = 0;

  /// `values` (shape().values() floats) must stay as they are until the weight gradient. The first stage reads the samples and leaves
  /// `input` alone; the others read `input`. The last one compares with the samples' targets and leaves `output` empty.
  virtual StepResult forward(std::uint64_t micro, std::span<const float> values, std::span<const std::uint32_t> samples,
                             const Activation& input, Activation& output) = 0;
  /// `output_gradient`: of the mean loss over the micro-batch; the last stage has its own. `input_gradient` stays empty on the first stage.
  virtual void input_gradient(std::uint64_t micro, const Activation& output_gradient, Activation& input_gradient) = 0;
  /// Adds `scale` times the gradient of each parameter, and the change of each statistic, to `out` (shape().values() floats), and forgets
  /// the micro-batch.
  virtual void weight_gradient(std::uint64_t micro, double scale, std::span<float> out) = 0;
};

/// One stage for each run of blocks: `first_blocks` are theirs, ascending from 0.
Result<std::vector<std::unique_ptr<StageLearner>>> make_stages(const ModelSpec& spec, const std::shared_ptr<const DataSet>& data,
                                                               std::span<const std::uint32_t> first_blocks);

}  // namespace motley::learn
