#include "store/tensor_places.h"

#include "base/bits.h"

namespace motley::store {
namespace {

constexpr std::uint64_t small_tensor = 256;  // values: encoding a smaller one saves less than 1 KiB
constexpr double small_part = 0.25;          // of the parameters: above it, 8 bits at the edges would be the precision of nearly everything

bool at_edge(const Tensor& tensor, const ModelShape& shape) { return tensor.block == 0 || tensor.block + 1 == shape.blocks; }

}  // namespace

std::vector<TensorPlace> tensor_places(const ModelShape& shape) {
  std::uint64_t edges = 0;
  for (const Tensor& tensor : shape.tensors)
    if (at_edge(tensor, shape)) edges += tensor.count;
  const bool edges_are_small = static_cast<double>(edges) <= small_part * static_cast<double>(shape.parameters);

  std::vector<TensorPlace> places;
  for (const Tensor& tensor : shape.tensors) {
    const bool exact = tensor.kind == TensorKind::statistic || tensor.shape.size() < 2 || tensor.count < small_tensor;
    const std::uint8_t least_bits = exact ? fp32_bits : edges_are_small && at_edge(tensor, shape) ? 8 : 2;
    places.push_back({tensor.offset, tensor.count, tensor.kind, least_bits});
  }
  return places;
}

}  // namespace motley::store
