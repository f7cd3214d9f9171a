// Forward and backward of a model on the CPU, at values that the caller provides. Two implementations: torch's autograd for every model,
// and explicit matrix products for chains of linear layers, where autograd's bookkeeping costs as much as the products.
#pragma once
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <memory>
#include <span>

#include "base/step_io.h"
#include "learn/learner.h"
#include "learn/torch/models.h"

namespace motley::learn {

class Network {
 public:
  virtual ~Network() = default;

  /// Logits at `values`, rows x classes, contiguous, valid until the next call. In training, `values` and `inputs` must not change until
  /// backward(). Waits with `io` for each block's values; returns an undefined tensor when `io` gave up.
  virtual at::Tensor forward(std::span<const float> values, const at::Tensor& inputs, Mode mode, StepIo& io) = 0;

  /// Once after each training forward. `out` (as large as `values`) receives the gradient of each parameter and the change of each
  /// statistic. Tells `io` of each block's gradient, from the last block to the first.
  virtual void backward(const at::Tensor& logits_gradient, std::span<float> out, StepIo& io) = 0;

  /// Bytes of activations and their gradients for each sample of a training step: an upper estimate, from one sample (its values do not
  /// matter). Not to be called between forward and backward.
  virtual std::uint64_t activation_bytes_per_sample(const at::Tensor& sample) = 0;

  /// Work, output and kept bytes of each block for one sample. Not to be called between forward and backward.
  virtual std::vector<BlockProfile> profile(const at::Tensor& sample) = 0;
};

/// For any model. Binds the model's slots: the model must outlive the network and have no other.
std::unique_ptr<Network> graph_network(Model& model);

/// For the shape of an mlp.
std::unique_ptr<Network> dense_network(const ModelShape& shape);

}  // namespace motley::learn
