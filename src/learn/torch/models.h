// Model: a list of blocks, its tensors laid out as one flat buffer, and its loss. Built-in models are sized for their data.
#pragma once
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

/// `first_block`: the index of blocks[0] in the whole model.
Model lay_out(Blocks blocks, std::shared_ptr<const LossFunction> loss, std::uint32_t first_block = 0);

/// The model and the loss that are registered under these names. Refuses unknown names, with the known ones, and data of another kind.
Result<Model> make_model(const ModelSpec& spec, const SampleShape& data);

/// The initial values of a seed, through our own generator, a stream per tensor: the same with every version of torch.
void fill_initial(const Model& model, std::uint64_t seed, std::span<float> values);

// The built-in models. Their registered factories check that the sizes in `spec` are within bounds and that `data` suits the model.
Blocks mlp(const ModelSpec& spec, const SampleShape& data);
Blocks cnn(const ModelSpec& spec, const SampleShape& data);
Blocks vgg11(const ModelSpec& spec, const SampleShape& data);
Blocks resnet18(const ModelSpec& spec, const SampleShape& data);
Blocks resnet20(const ModelSpec& spec, const SampleShape& data);
Blocks transformer(const ModelSpec& spec, const SampleShape& data);

}  // namespace motley::learn
