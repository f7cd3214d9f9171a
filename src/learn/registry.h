// The registered data sets, models and losses. Job files name them as [data] kind, [model] kind and [model] loss. The built-in ones are
// rows of the registries (data.cpp, torch/models.cpp, torch/loss_function.cpp). A program that links the library adds its own under new
// names before it reads a job:
//   learn::data_sets().add("mine", [](const DataSpec& spec, learn::EvaluateOn on) -> Result<std::shared_ptr<const learn::DataSet>> {
//     return std::shared_ptr<const learn::DataSet>(std::make_shared<Mine>(spec.path, on));
//   });
//   learn::models().add("mine", [](const ModelSpec& spec, const learn::SampleShape& data) -> Result<learn::Blocks> {
//     learn::Blocks blocks;
//     blocks.push_back(std::make_unique<learn::LinearBlock>("linear1", data.inputs(), data.classes, learn::LinearBlock::Then::nothing));
//     return blocks;
//   });
//   learn::losses().add("mine", [] { return learn::autograd_loss(my_mean_loss); });
// Blocks and layers: torch/block.h, torch/layers.h. Losses: torch/loss_function.h. This header is torch-free.
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

/// Loads or makes a data set; see DataSet in dataset.h.
using DataSetFactory = std::function<Result<std::shared_ptr<const DataSet>>(const DataSpec&, EvaluateOn)>;
/// Makes the blocks of a model for samples of this shape, in forward order, or refuses samples that the model cannot read.
using ModelFactory = std::function<Result<std::vector<std::unique_ptr<Block>>>(const ModelSpec&, const SampleShape&)>;
using LossFactory = std::function<std::shared_ptr<const LossFunction>()>;

Registry<DataSetFactory>& data_sets();
/// Empty in a build without torch, as is losses().
Registry<ModelFactory>& models();
Registry<LossFactory>& losses();

}  // namespace motley::learn
