// The registered data sets, models and losses. A program that links the library adds its own under new names before it reads a job:
//   learn::data_sets().add("mine", [](const DataSpec& spec, learn::EvaluateOn on) { ... });
// Job files name them as [data] kind, [model] kind and [model] loss. Torch-free header.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "base/data_spec.h"
#include "base/model_spec.h"
#include "base/registry.h"
#include "base/result.h"
#include "learn/dataset.h"
#include "learn/split.h"

namespace motley::learn {

class Block;         // learn/torch/block.h
class LossFunction;  // learn/torch/loss_function.h

/// Loads or makes a data set; see DataSet for what it must provide.
using DataSetFactory = std::function<Result<std::shared_ptr<const DataSet>>(const DataSpec&, EvaluateOn)>;
/// Makes the blocks of a model for samples of this shape, in forward order, or refuses samples that the model cannot read.
using ModelFactory = std::function<Result<std::vector<std::unique_ptr<Block>>>(const ModelSpec&, const SampleShape&)>;
using LossFactory = std::function<std::shared_ptr<const LossFunction>()>;

Registry<DataSetFactory>& data_sets();
/// Empty in a build without torch, as is losses().
Registry<ModelFactory>& models();
Registry<LossFactory>& losses();

}  // namespace motley::learn
