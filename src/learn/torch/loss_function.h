// The function that training minimises, of a model's outputs and the samples' targets, with its gradient.
#pragma once
#include <ATen/ATen.h>

#include <functional>
#include <memory>

#include "learn/loss.h"

namespace motley::learn {

/// Outputs (logits) have one row for each target. Targets are class indices. Any thread.
class LossFunction {
 public:
  virtual ~LossFunction() = default;
  /// On the CPU. `gradient`, of the mean loss, is as large as `outputs`; an undefined tensor: not computed.
  [[nodiscard]] virtual Score on_host(const at::Tensor& outputs, const at::Tensor& targets, const at::Tensor& gradient) const = 0;

  struct Tensors {
    at::Tensor sums;      // two doubles: the loss over all rows, and the number of rows whose highest output is their target
    at::Tensor gradient;  // of the mean loss, in the shape and type of the outputs
  };
  /// On any device, without waiting for it. `targets` are flat.
  [[nodiscard]] virtual Tensors on_device(const at::Tensor& outputs, const at::Tensor& targets, bool wants_gradient) const = 0;
};

/// The mean loss over the rows of `outputs` [rows, classes], from operations that torch's autograd differentiates.
using MeanLoss = std::function<at::Tensor(const at::Tensor& outputs, const at::Tensor& targets)>;
/// A user's loss: losses().add("mine", [] { return autograd_loss(mine); }).
[[nodiscard]] std::shared_ptr<const LossFunction> autograd_loss(MeanLoss mean_loss);

}  // namespace motley::learn
