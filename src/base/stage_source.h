// The interface of one stage of a pipeline: a GradientSource whose work on a micro-batch is divided into three parts, which may be computed
// at different times. Activations and their gradients pass between stages as tensors.
#pragma once
#include <cstdint>
#include <span>

#include "base/activation.h"
#include "base/gradient_source.h"

namespace motley {

/// Not thread-safe: one owner thread. The caller numbers the micro-batches. The parts of one micro-batch are called in the order forward,
/// input gradient, weight gradient; parts of different micro-batches in any order. Every function may throw OutOfMemory or
/// ComputationFailed.
class StageSource {
 public:
  virtual ~StageSource() = default;
  /// `values` (the whole stage) must not change until the weight gradient. The first stage reads the samples and ignores `input`; the
  /// others read `input`. The last stage computes the loss, which it returns, and leaves `output` empty.
  virtual StepResult forward(std::uint64_t micro, std::span<const float> values, std::span<const std::uint32_t> samples,
                             const Activation& input, Activation& output) = 0;
  /// `output_gradient`: gradient of the mean loss over the micro-batch; the last stage ignores it. The first stage leaves `input_gradient`
  /// empty.
  virtual void input_gradient(std::uint64_t micro, const Activation& output_gradient, Activation& input_gradient) = 0;
  /// Adds `scale` times the gradient of each parameter, and `scale` times the change of each statistic, to `out` (the whole stage), and
  /// frees the micro-batch.
  virtual void weight_gradient(std::uint64_t micro, double scale, std::span<float> out) = 0;
};

}  // namespace motley
