// ResNet-20 for small pictures (He et al. 2016, section 4.2): one convolution, three layers of three residual units, the mean over
// the pixels and one linear layer. Shortcuts that change size have no parameters (option A of the paper). Each unit is one block.
// ResNet-18 (section 4.1) for small pictures: the same first and last block, four layers of two units; shortcuts that change size are 1x1
// convolutions with batch norm (option B).
#include <fmt/format.h>

#include "learn/torch/layers.h"
#include "learn/torch/models.h"

namespace motley::learn {

namespace {

class Stem final : public Block {
 public:
  Stem(std::string name, std::int64_t from, std::int64_t to)
      : Block(std::move(name)), conv_(*this, "conv.", from, to, 1), norm_(*this, "norm.", to) {}
  at::Tensor forward(const at::Tensor& x, Mode mode) override { return at::relu(norm_(conv_(x), mode)); }

 private:
  Conv3x3 conv_;
  BatchNorm norm_;
};

class Residual final : public Block {
 public:
  Residual(std::string name, std::int64_t from, std::int64_t to, std::int64_t stride)
      : Block(std::move(name)),
        conv1_(*this, "conv1.", from, to, stride),
        norm1_(*this, "norm1.", to),
        conv2_(*this, "conv2.", to, to, 1),
        norm2_(*this, "norm2.", to),
        more_channels_(to - from),
        stride_(stride) {}
  at::Tensor forward(const at::Tensor& x, Mode mode) override {
    const at::Tensor y = norm2_(conv2_(at::relu(norm1_(conv1_(x), mode))), mode);
    return at::relu(y + shortcut(x));
  }

 private:
  /// Every other pixel, and channels of zeros on both sides.
  [[nodiscard]] at::Tensor shortcut(const at::Tensor& x) const {
    if (stride_ == 1 && more_channels_ == 0) return x;
    const at::Tensor downsampled = x.slice(2, 0, x.size(2), stride_).slice(3, 0, x.size(3), stride_);
    const std::vector<std::int64_t> channels{0, 0, 0, 0, more_channels_ / 2, more_channels_ - more_channels_ / 2};
    return at::constant_pad_nd(downsampled, channels);
  }
  Conv3x3 conv1_;
  BatchNorm norm1_;
  Conv3x3 conv2_;
  BatchNorm norm2_;
  std::int64_t more_channels_;
  std::int64_t stride_;
};

class ProjectedResidual final : public Block {
 public:
  ProjectedResidual(std::string name, std::int64_t from, std::int64_t to, std::int64_t stride)
      : Block(std::move(name)),
        conv1_(*this, "conv1.", from, to, stride),
        norm1_(*this, "norm1.", to),
        conv2_(*this, "conv2.", to, to, 1),
        norm2_(*this, "norm2.", to),
        conv3_(*this, "shortcut.conv.", from, to, stride),
        norm3_(*this, "shortcut.norm.", to) {}
  at::Tensor forward(const at::Tensor& x, Mode mode) override {
    const at::Tensor y = norm2_(conv2_(at::relu(norm1_(conv1_(x), mode))), mode);
    return at::relu(y + norm3_(conv3_(x), mode));
  }

 private:
  Conv3x3 conv1_;
  BatchNorm norm1_;
  Conv3x3 conv2_;
  BatchNorm norm2_;
  Conv1x1 conv3_;
  BatchNorm norm3_;
};

class MeanThenLinear final : public Block {
 public:
  MeanThenLinear(std::string name, std::int64_t from, std::int64_t to)
      : Block(std::move(name)), linear_(*this, "", from, to, he(before_nothing, from)) {}
  at::Tensor forward(const at::Tensor& x, Mode) override { return linear_(x.flatten(2).mean(2)); }

 private:
  Linear linear_;
};

}  // namespace

Blocks resnet20(const ModelSpec& spec, const SampleShape& data) {
  Blocks blocks;
  std::int64_t from = static_cast<std::int64_t>(spec.width);
  blocks.push_back(std::make_unique<Stem>("stem", data.channels, from));
  for (int layer = 1; layer <= 3; ++layer) {
    const std::int64_t to = static_cast<std::int64_t>(spec.width) << (layer - 1);
    for (std::uint64_t unit = 0; unit < (spec.depth == 0 ? 3 : spec.depth); ++unit) {
      const std::int64_t stride = layer > 1 && unit == 0 ? 2 : 1;
      blocks.push_back(std::make_unique<Residual>(fmt::format("layer{}.{}", layer, unit), from, to, stride));
      from = to;
    }
  }
  blocks.push_back(std::make_unique<MeanThenLinear>("head", from, data.classes));
  return blocks;
}

Blocks resnet18(const ModelSpec& spec, const SampleShape& data) {
  Blocks blocks;
  std::int64_t from = static_cast<std::int64_t>(spec.width);
  blocks.push_back(std::make_unique<Stem>("stem", data.channels, from));
  for (int layer = 1; layer <= 4; ++layer) {
    const std::int64_t to = static_cast<std::int64_t>(spec.width) << (layer - 1);
    for (std::uint64_t unit = 0; unit < (spec.depth == 0 ? 2 : spec.depth); ++unit) {
      const std::string name = fmt::format("layer{}.{}", layer, unit);
      if (from == to)
        blocks.push_back(std::make_unique<Residual>(name, to, to, 1));
      else
        blocks.push_back(std::make_unique<ProjectedResidual>(name, from, to, 2));
      from = to;
    }
  }
  blocks.push_back(std::make_unique<MeanThenLinear>("head", from, data.classes));
  return blocks;
}

}  // namespace motley::learn
