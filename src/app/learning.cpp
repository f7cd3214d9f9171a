#include "app/learning.h"

namespace motley::app {

std::vector<store::TensorPlace> places(const learn::ModelShape& shape) {
  std::vector<store::TensorPlace> result;
  for (const learn::Tensor& tensor : shape.tensors)
    result.push_back({tensor.offset, tensor.count,
                      tensor.kind == learn::TensorKind::parameter ? store::SliceKind::parameter : store::SliceKind::statistic});
  return result;
}

std::vector<store::NamedTensor> named(const learn::ModelShape& shape) {
  std::vector<store::NamedTensor> result;
  for (const learn::Tensor& tensor : shape.tensors) result.push_back({tensor.name, tensor.shape, tensor.offset});
  return result;
}

}  // namespace motley::app
