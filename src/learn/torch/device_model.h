// A model on a device with memory of its own: its values and gradients in flat buffers there, and forward and backward over them, block by
// block. What kernels would read in another way (weights in bf16, those of convolutions channels-last, whatever begins at an odd place) has
// a place of its own, filled from the flat buffer before the block's forward; gradients go from where backward left them to the flat
// buffer, in one pass. Norms, sums and statistics stay in floats. Weights in bf16 need not come as floats, nor their gradients leave as
// such: beside the flat buffers are flat ones of bf16 for both.
#pragma once
#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "learn/torch/lanes.h"
#include "learn/torch/models.h"

namespace motley::learn {

/// [first, last) of a flat tensor.
inline at::Tensor part(const at::Tensor& flat, std::uint64_t first, std::uint64_t last) {
  return flat.narrow(0, static_cast<std::int64_t>(first), static_cast<std::int64_t>(last - first));
}

/// What it is asked to do goes to the current stream: on(Lane::compute) should be it.
class DeviceModel {
 public:
  DeviceModel(Model model, at::Device device, bool half);
  DeviceModel(const DeviceModel&) = delete;
  DeviceModel& operator=(const DeviceModel&) = delete;

  [[nodiscard]] const Model& model() const { return model_; }
  [[nodiscard]] const ModelShape& shape() const { return model_.shape; }
  [[nodiscard]] const Lanes& lanes() const { return lanes_; }
  [[nodiscard]] at::Device device() const { return device_; }
  /// Parameters and statistics, in floats.
  [[nodiscard]] const at::Tensor& values() const { return values_; }
  /// Of the mean loss; for statistics their change.
  [[nodiscard]] const at::Tensor& gradient() const { return gradient_; }
  /// The same in bf16: weights, as far as they come so, and their gradients, as far as they are wanted so; none unless it computes in bf16.
  [[nodiscard]] const at::Tensor& rounded() const { return rounded_; }
  [[nodiscard]] const at::Tensor& rounded_gradient() const { return rounded_gradient_; }

  /// The parameters of a block, in the flat buffers.
  struct Range {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
  };
  [[nodiscard]] Range range(std::size_t block) const { return {cuts_[block].first, cuts_[block].last}; }
  [[nodiscard]] std::size_t blocks() const { return cuts_.size(); }

  /// Values of this range are about to be written to rounded(), or to values(): from now on those that the tensors there have in it count.
  /// Going over from one to the other takes along what a tensor has, and waits for the device. Only weights in bf16 may come rounded.
  void expect(const Range& range, bool rounded);
  /// Gradients of tensors that lie in these ranges (ascending) are made in rounded_gradient() from now on, those of all others in
  /// gradient(); what is not made is 0 in the former. Only of weights in bf16.
  void round_gradients(std::span<const Range> ranges);

  /// A forward pass on its way.
  struct Passing {
    at::Tensor x;           // what the last block has put out; at first the inputs
    std::size_t block = 0;  // that is next
  };
  using Before = std::function<bool(std::size_t)>;
  /// The statistics are there: a pass may begin. There is one at a time.
  Passing begin(const at::Tensor& inputs, Mode mode);
  /// Up to the block `until`. `before(block)` sees to it that the block's values are there. False: give up; nothing of it is worth
  /// anything.
  bool pass(Passing& passing, Mode mode, std::size_t until, const Before& before);
  /// The same from the beginning to the logits; none: given up.
  at::Tensor forward(const at::Tensor& inputs, Mode mode, const Before& before);
  /// Loss and hits into sums(); the gradient of the mean loss, in the logits' own type, if it is wanted.
  at::Tensor score(const at::Tensor& logits, const at::Tensor& targets, bool wants_gradient);
  /// Once after a training forward. `after(block)`: its gradient is there; with `after(blocks())` the change of the statistics.
  void backward(at::Tensor gradient, const std::function<void(std::size_t)>& after);
  /// Two doubles on the device.
  [[nodiscard]] const at::Tensor& sums() const { return sums_; }
  /// One more: of the parameters in a flat tensor. Summed in floats, in one pass: in doubles torch would first make a copy twice as large,
  /// which takes a small part of a GPU as long as some layers.
  [[nodiscard]] at::Tensor squared_norm(const at::Tensor& flat) const {
    return at::linalg_vector_norm(part(flat, 0, shape().parameters), 2).to(at::kDouble).square();
  }
  /// However a step has ended: no graph is left.
  void forget();
  /// The statistics are those that the last training forward began with.
  void rewind();

 private:
  struct Bound {
    at::Tensor parameter;
    at::Tensor gradient;  // in the flat buffer
    at::Tensor rounded;   // in that of bf16
    Range place;
    bool rounds = false;  // its gradient goes there
  };
  /// What is computed with in a place of its own.
  struct KernelCopy {
    at::Tensor values;   // where the kernels read
    at::Tensor flat;     // where the others expect them
    at::Tensor rounded;  // or here
    Range place;
    bool statistic = false;
    bool came_rounded = false;
  };
  /// A block's own piece of the work.
  struct Cut {
    std::uint64_t first = 0;  // its parameters in the flat buffer; none: first == last
    std::uint64_t last = 0;
    std::vector<Bound> bound;
    std::vector<KernelCopy> kernel_copies;
    at::Tensor input;  // of the last training forward
    at::Tensor output;
  };
  void bind();
  [[nodiscard]] at::Tensor place_of(const Slot& slot, const at::Tensor& flat) const;

  Model model_;
  at::Device device_;
  Lanes lanes_;
  std::vector<Cut> cuts_;         // by block
  at::Tensor values_, gradient_;  // flat
  at::Tensor rounded_, rounded_gradient_;
  bool half_;
  at::Tensor before_;  // the statistics before this step
  at::Tensor sums_;
};

}  // namespace motley::learn
