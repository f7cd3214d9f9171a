// Where the mathematics of one stage of a pipeline comes from: the three parts of each micro-batch.
#pragma once
#include <cstdint>
#include <span>

#include "base/activation.h"
#include "store/gradient_source.h"

namespace motley::store {

/// One owner thread. The parts of one micro-batch come in order, those of different ones in any.
class StageSource {
 public:
  virtual ~StageSource() = default;
  /// `values` must stay as they are until the weight gradient. The first stage reads the samples, the others `input`; the last one has a
  /// loss and leaves `output` empty.
  virtual Loss forward(std::uint64_t micro, std::span<const float> values, std::span<const std::uint32_t> samples, const Activation& input,
                       Activation& output) = 0;
  virtual void input_gradient(std::uint64_t micro, const Activation& output_gradient, Activation& input_gradient) = 0;
  /// Adds `scale` times the gradient, and the change of statistics, to `out`.
  virtual void weight_gradient(std::uint64_t micro, double scale, std::span<float> out) = 0;
};

}  // namespace motley::store
