// From the shape of a model to what cut() divides: each tensor's place in the flat buffer and the precision that it needs when it is sent.
#pragma once
#include <vector>

#include "base/model_shape.h"
#include "store/layout.h"

namespace motley::store {

/// Statistics, tensors of fewer than two dimensions (biases, norms) and tiny tensors are always sent with 32 bits per value. The first and
/// the last block get at least 8 bits where together they are a small part of the model; all other tensors at least 2.
[[nodiscard]] std::vector<TensorPlace> tensor_places(const ModelShape& shape);

}  // namespace motley::store
