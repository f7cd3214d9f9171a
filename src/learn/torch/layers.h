// Layers, of which blocks are built: each declares its tensors in the block that owns it and is called like a function.
// Initial weights after He et al. 2015: deviation sqrt(gain / fan-in), gain 2 before a rectifier and 1 elsewhere.
#pragma once
#include <cmath>
#include <string>

#include "learn/torch/block.h"

namespace motley::learn {

inline constexpr double before_relu = 2;
inline constexpr double before_nothing = 1;

inline Init he(double gain, std::int64_t fan_in) { return {0, std::sqrt(gain / static_cast<double>(fan_in))}; }

struct Linear {
  Linear(Block& in, const std::string& name, std::int64_t from, std::int64_t to, Init init)
      : weight(in.parameter(name + "weight", {to, from}, init)), bias(in.parameter(name + "bias", {to}, {})) {}
  at::Tensor operator()(const at::Tensor& x) const { return at::linear(x, weight, bias); }
  const at::Tensor& weight;
  const at::Tensor& bias;
};

/// 3x3, padded by one: keeps the size at stride 1, halves it (rounded up) at stride 2. Without a bias: batch norm follows.
struct Conv3x3 {
  Conv3x3(Block& in, const std::string& name, std::int64_t from, std::int64_t to, std::int64_t stride_)
      : weight(in.parameter(name + "weight", {to, from, 3, 3}, he(before_relu, 9 * from))), stride(stride_) {}
  at::Tensor operator()(const at::Tensor& x, const at::Tensor& bias = {}) const {
    const std::vector<std::int64_t> steps{stride, stride}, padding{1, 1};
    return at::conv2d(x, weight, bias, at::IntArrayRef(steps), at::IntArrayRef(padding));
  }
  const at::Tensor& weight;
  std::int64_t stride;
};

/// 1x1, without a bias: another number of channels, and every other pixel at stride 2.
struct Conv1x1 {
  Conv1x1(Block& in, const std::string& name, std::int64_t from, std::int64_t to, std::int64_t stride_)
      : weight(in.parameter(name + "weight", {to, from, 1, 1}, he(before_nothing, from))), stride(stride_) {}
  at::Tensor operator()(const at::Tensor& x) const {
    const std::vector<std::int64_t> steps{stride, stride};
    return at::conv2d(x, weight, {}, at::IntArrayRef(steps));
  }
  const at::Tensor& weight;
  std::int64_t stride;
};

struct BatchNorm {
  BatchNorm(Block& in, const std::string& name, std::int64_t channels)
      : weight(in.parameter(name + "weight", {channels}, {1, 0}, /*exact=*/true)),
        bias(in.parameter(name + "bias", {channels}, {}, /*exact=*/true)),
        mean(in.statistic(name + "running_mean", {channels}, {})),
        variance(in.statistic(name + "running_var", {channels}, {1, 0})) {}
  at::Tensor operator()(const at::Tensor& x, Mode mode) const {
    constexpr double momentum = 0.1, epsilon = 1e-5;  // torch's defaults
    return at::batch_norm(x, weight, bias, mean, variance, mode == Mode::training, momentum, epsilon, /*cudnn_enabled=*/true);
  }
  const at::Tensor& weight;
  const at::Tensor& bias;
  const at::Tensor& mean;
  const at::Tensor& variance;
};

struct LayerNorm {
  LayerNorm(Block& in, const std::string& name, std::int64_t width)
      : weight(in.parameter(name + "weight", {width}, {1, 0}, /*exact=*/true)),
        bias(in.parameter(name + "bias", {width}, {}, /*exact=*/true)) {}
  at::Tensor operator()(const at::Tensor& x) const {
    return at::layer_norm(x.to(at::kFloat), weight.sizes(), weight, bias).to(x.scalar_type());
  }
  const at::Tensor& weight;
  const at::Tensor& bias;
};

/// Halves height and width, rounded down.
inline at::Tensor max_pool(const at::Tensor& x) { return at::max_pool2d(x, {2, 2}); }

/// A linear layer on flattened samples, with an optional rectifier.
class LinearBlock final : public Block {
 public:
  enum class Then { relu, nothing };
  LinearBlock(std::string name, std::int64_t from, std::int64_t to, Then then)
      : Block(std::move(name)), linear_(*this, "", from, to, he(then == Then::relu ? before_relu : before_nothing, from)), then_(then) {}
  at::Tensor forward(const at::Tensor& x, Mode) override {
    const at::Tensor y = linear_(x.flatten(1));
    return then_ == Then::relu ? at::relu(y) : y;
  }

 private:
  Linear linear_;
  Then then_;
};

}  // namespace motley::learn
