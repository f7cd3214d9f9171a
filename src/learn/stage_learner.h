// One stage of a pipeline: consecutive blocks of a model. Torch-free header.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/model_shape.h"
#include "base/model_spec.h"
#include "base/result.h"
#include "base/stage_source.h"
#include "learn/data.h"

namespace motley::learn {

/// A StageSource that knows its tensors. Exceptions of torch leave as OutOfMemory or ComputationFailed.
class StageLearner : public StageSource {
 public:
  /// The stage's own tensors, from offset 0: parameters, then statistics. Names and block numbers are those of the whole model.
  [[nodiscard]] virtual const ModelShape& shape() const = 0;
};

/// Cuts the model into stages. `first_blocks`: index of each stage's first block, ascending from 0.
Result<std::vector<std::unique_ptr<StageLearner>>> make_stages(const ModelSpec& spec, const std::shared_ptr<const DataSet>& data,
                                                               std::span<const std::uint32_t> first_blocks);

}  // namespace motley::learn
