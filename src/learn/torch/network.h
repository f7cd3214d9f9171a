// A network at given values: logits forward, gradients backward. Two implementations: torch's autograd for every model, and the
// matrix products by hand for chains of linear layers, where autograd's bookkeeping costs as much as the mathematics.
#pragma once
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <memory>
#include <span>

#include "learn/torch/models.h"

namespace motley::learn {

class Network {
 public:
  virtual ~Network() = default;

  /// Logits at `values`, rows x classes, contiguous, good until the next call. `values` and `inputs` must stay as they are
  /// until backward() when mode is training. Asks `io` for each block's values; an undefined tensor when it gave up.
  virtual at::Tensor forward(std::span<const float> values, const at::Tensor& inputs, Mode mode, StepIo& io) = 0;

  /// Once after each training forward: turns the gradient of the logits into that of each parameter, and the change of each
  /// statistic. `out` is as large as `values` was and is written whole. Tells `io` of each block's gradient, the last block's first.
  virtual void backward(const at::Tensor& logits_gradient, std::span<float> out, StepIo& io) = 0;

  /// Bytes between the layers for each sample of a training step: what each of them puts out and its gradient. An upper estimate, from
  /// one sample (its values do not matter). Not between forward and backward.
  virtual std::uint64_t activation_bytes_per_sample(const at::Tensor& sample) = 0;

  /// Work, output and kept bytes of each block for one sample. Not between forward and backward.
  virtual std::vector<BlockProfile> profile(const at::Tensor& sample) = 0;
};

/// Any model; binds its slots, so the model must outlive the network and have no other.
std::unique_ptr<Network> graph_network(Model& model);

/// The same function for the shape of an mlp.
std::unique_ptr<Network> dense_network(const ModelShape& shape);

}  // namespace motley::learn
