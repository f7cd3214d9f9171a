// A model on a device with memory of its own: flat buffers of values and gradients there, and forward and backward over them, block by
// block. Tensors that kernels read in another format (weights in bf16, channels-last, aligned) have a copy in that format, filled from the
// flat buffer before the block's forward. Norms, sums and statistics stay in fp32. For weights in bf16 there is a second pair of flat
// buffers, in bf16.
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

/// Operations go to the current stream, which should be Lane::compute.
class DeviceModel {
 public:
  DeviceModel(Model model, at::Device device, bool bf16);
  DeviceModel(const DeviceModel&) = delete;
  DeviceModel& operator=(const DeviceModel&) = delete;

  [[nodiscard]] const Model& model() const { return model_; }
  [[nodiscard]] const ModelShape& shape() const { return model_.shape; }
  [[nodiscard]] const Lanes& lanes() const { return lanes_; }
  [[nodiscard]] at::Device device() const { return device_; }
  /// Parameters and statistics, fp32.
  [[nodiscard]] const at::Tensor& values() const { return values_; }
  /// Gradient of the mean loss; for statistics their change.
  [[nodiscard]] const at::Tensor& gradient() const { return gradient_; }
  /// The same in bf16: the weights that are received as bf16, and the gradients that are to be sent as bf16. Undefined unless the model
  /// computes in bf16.
  [[nodiscard]] const at::Tensor& rounded() const { return rounded_; }
  [[nodiscard]] const at::Tensor& rounded_gradient() const { return rounded_gradient_; }

  /// In the flat buffers.
  struct Range {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
  };
  /// The parameters of a block; for block blocks() all statistics.
  [[nodiscard]] Range range(std::size_t block) const {
    return block < blocks_.size() ? Range{blocks_[block].first, blocks_[block].last} : Range{shape().parameters, shape().values()};
  }
  [[nodiscard]] std::size_t blocks() const { return blocks_.size(); }

  /// Call before values of this range are written to rounded() (`rounded`) or to values(): from now on the tensors in the range are read
  /// from there. A switch between the two copies the tensor's present values and waits for the device. Only weights in bf16 may be rounded.
  void expect(const Range& range, bool rounded);
  /// From now on backward() writes gradients of tensors in these ranges (ascending) to rounded_gradient(), all others to gradient(). The
  /// rest of rounded_gradient() is 0. The ranges hold only weights in bf16.
  void round_gradients(std::span<const Range> ranges);

  /// A forward pass that has begun.
  struct Passing {
    at::Tensor x;           // output of the last block; at first the inputs
    std::size_t block = 0;  // the next one
  };
  using Before = std::function<bool(std::size_t)>;
  /// Begins a pass; the statistics are on the device. There is one pass at a time.
  Passing begin(const at::Tensor& inputs, Mode mode);
  /// Runs the blocks before `until`. `before(block)` brings the block's values to the device; when it returns false, so does pass(), and
  /// the pass cannot go on.
  bool pass(Passing& passing, Mode mode, std::size_t until, const Before& before);
  /// The whole pass. Returns the logits, or an undefined tensor when `before` gave up.
  at::Tensor forward(const at::Tensor& inputs, Mode mode, const Before& before);
  /// Stores loss and hits in sums(). Returns the gradient of the mean loss, in the type of the logits, if `wants_gradient`.
  at::Tensor score(const at::Tensor& logits, const at::Tensor& targets, bool wants_gradient);
  /// Once after a training forward. Calls `after(block)` when the block's gradient is computed, `after(blocks())` for the statistics.
  void backward(at::Tensor gradient, const std::function<void(std::size_t)>& after);
  /// Loss and hits of the last score(): two doubles on the device.
  [[nodiscard]] const at::Tensor& sums() const { return sums_; }
  /// Squared norm of the parameters in a flat tensor: one double on the device. Summed in fp32: for doubles torch would first copy the
  /// tensor, which takes as long as some layers.
  [[nodiscard]] at::Tensor squared_norm(const at::Tensor& flat) const {
    return at::linalg_vector_norm(part(flat, 0, shape().parameters), 2).to(at::kDouble).square();
  }
  /// Frees the autograd graph, however the step has ended.
  void forget();
  /// Restores the statistics with which the last training forward began.
  void rewind();

 private:
  /// A parameter as autograd sees it, and views of the flat buffers for its gradient.
  struct Bound {
    at::Tensor parameter;
    at::Tensor gradient;  // fp32
    at::Tensor rounded;   // bf16
    Range range;
    bool rounds = false;  // backward() writes to `rounded`
  };
  /// A tensor in the format that the kernels read, and views of the flat buffers.
  struct KernelCopy {
    at::Tensor values;
    at::Tensor flat;     // fp32
    at::Tensor rounded;  // bf16
    Range range;
    bool statistic = false;
    bool from_rounded = false;  // filled from `rounded`; otherwise from `flat`
  };
  /// The tensors of one block.
  struct BlockTensors {
    std::uint64_t first = 0;  // range of its parameters in the flat buffer; empty if it has none
    std::uint64_t last = 0;
    std::vector<Bound> bound;
    std::vector<KernelCopy> kernel_copies;
    at::Tensor input;  // of the last training forward
    at::Tensor output;
  };
  void bind();
  [[nodiscard]] at::Tensor in_kernel_format(const Slot& slot, const at::Tensor& flat) const;

  Model model_;
  at::Device device_;
  Lanes lanes_;
  std::vector<BlockTensors> blocks_;
  at::Tensor values_, gradient_;  // flat
  at::Tensor rounded_, rounded_gradient_;
  bool bf16_;
  at::Tensor statistics_before_;  // this step
  at::Tensor sums_;
};

}  // namespace motley::learn
