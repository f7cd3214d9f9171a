// Multi-layer perceptron: each linear layer with its rectifier is one block.
#include <fmt/format.h>

#include "learn/torch/layers.h"
#include "learn/torch/models.h"

namespace motley::learn {

Blocks mlp(const ModelSpec& spec, const SampleShape& data) {
  Blocks blocks;
  std::int64_t from = data.inputs();
  for (const std::uint64_t width : spec.hidden) {
    const auto to = static_cast<std::int64_t>(width);
    blocks.push_back(std::make_unique<LinearBlock>(fmt::format("linear{}", blocks.size() + 1), from, to, LinearBlock::Then::relu));
    from = to;
  }
  blocks.push_back(
      std::make_unique<LinearBlock>(fmt::format("linear{}", blocks.size() + 1), from, data.classes, LinearBlock::Then::nothing));
  return blocks;
}

}  // namespace motley::learn
