#include "store/layer_timing.h"

#include <numeric>

#include "base/check.h"
#include "store/constants.h"

namespace motley::store {

LayerTiming layer_timing(const Layout& layout, std::span<const TensorPlace> tensors, std::span<const std::uint32_t> block_of_tensor,
                         std::span<const double> work_of_block) {
  check(tensors.size() == block_of_tensor.size(), "each tensor belongs to a block");
  const double all = std::accumulate(work_of_block.begin(), work_of_block.end(), 0.0);
  check(all > 0, "a model has work");
  std::vector<double> before{0};  // by block: fraction of the work that precedes it in forward order
  for (const double work : work_of_block) before.push_back(before.back() + work / all);

  LayerTiming result;
  std::size_t tensor = 0;
  for (const Slice& slice : layout.slices) {
    while (tensors[tensor].offset + tensors[tensor].count <= slice.offset) ++tensor;
    const bool parameter = slice.kind == TensorKind::parameter;
    const double earlier = parameter ? before[block_of_tensor[tensor]] : 0;
    result.read.push_back(forward_fraction * earlier);
    result.gradient_ready.push_back(parameter ? 1 - (1 - forward_fraction) * earlier : 1);
  }
  return result;
}

}  // namespace motley::store
