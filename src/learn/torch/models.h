// A model is a list of blocks whose tensors lie in one flat buffer, and a loss. To add one: a function from ModelSpec and SampleShape to
// Blocks (mlp.cpp is the shortest), layers from layers.h or operations of torch, and a row in models() (models.cpp) or, in a program of
// one's own,
//   learn::models().add("mine", [](const ModelSpec& spec, const SampleShape& data) -> Result<Blocks> { ... });
#pragma once
#include "base/model_shape.h"
#include "base/model_spec.h"
#include "base/result.h"
#include "learn/dataset.h"
#include "learn/torch/block.h"
#include "learn/torch/loss_function.h"

namespace motley::learn {

/// In the flat buffer parameters come first, in forward order, then statistics, without gaps.
struct Model {
  Blocks blocks;
  ModelShape shape;
  std::vector<Slot*> slots;  // slots[i] is shape.tensors[i]; they live in the blocks
  std::shared_ptr<const LossFunction> loss;
};

/// Assigns offsets to the tensors. `first_block`: the index of blocks[0] in the whole model.
Model lay_out(Blocks blocks, std::shared_ptr<const LossFunction> loss, std::uint32_t first_block = 0);

/// The registered model `spec.kind` with the loss `spec.loss`. Refuses unknown names, naming the known ones, and data that the model cannot
/// read.
Result<Model> make_model(const ModelSpec& spec, const SampleShape& data);

/// The initial values of a seed, from our own generator, one stream per tensor: equal for every version of torch.
void fill_initial(const Model& model, std::uint64_t seed, std::span<float> values);

// The built-in models, sized for their data. Their factories in models() check the sizes in `spec` and the shape of the data before.
Blocks mlp(const ModelSpec& spec, const SampleShape& data);
Blocks cnn(const ModelSpec& spec, const SampleShape& data);
Blocks vgg11(const ModelSpec& spec, const SampleShape& data);
Blocks resnet18(const ModelSpec& spec, const SampleShape& data);
Blocks resnet20(const ModelSpec& spec, const SampleShape& data);
Blocks transformer(const ModelSpec& spec, const SampleShape& data);

}  // namespace motley::learn
