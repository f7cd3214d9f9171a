// The models by name, each a list of blocks sized for its data. A model that does not fit the data is refused with what fits.
#pragma once
#include "learn/dataset.h"
#include "learn/torch/block.h"

namespace motley::learn {

/// Blocks with their tensors laid out as one flat buffer: parameters in forward order, then statistics, without gaps.
struct Model {
  Blocks blocks;
  ModelShape shape;
  std::vector<Slot*> slots;  // slots[i] is shape.tensors[i]; they live in the blocks
};

/// `first_block`: what the first of them is called in the whole model.
Model lay_out(Blocks blocks, std::uint32_t first_block = 0);

Result<Model> make_model(const ModelSpec& spec, const SampleShape& data);

/// The initial values of a seed, through our own generator, a stream per tensor: the same with every version of torch.
void fill_initial(const Model& model, std::uint64_t seed, std::span<float> values);

// One function each. The sizes in `spec` are within bounds and `data` suits the model: make_model() sees to both.
Blocks mlp(const ModelSpec& spec, const SampleShape& data);
Blocks cnn(const ModelSpec& spec, const SampleShape& data);
Blocks vgg11(const ModelSpec& spec, const SampleShape& data);
Blocks resnet18(const ModelSpec& spec, const SampleShape& data);
Blocks resnet20(const ModelSpec& spec, const SampleShape& data);
Blocks transformer(const ModelSpec& spec, const SampleShape& data);

}  // namespace motley::learn
