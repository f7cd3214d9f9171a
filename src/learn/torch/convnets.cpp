// Plain convolutional networks: a small one (two convolutions) and VGG-11 (Simonyan and Zisserman 2014) with batch norm, the
// 32x32 version with one linear layer behind the convolutions. `width` is the channels of the first block (VGG-11's own: 64).
#include <fmt/format.h>

#include <array>

#include "learn/torch/layers.h"
#include "learn/torch/models.h"

namespace motley::learn {

namespace {

class ConvPool final : public Block {
 public:
  ConvPool(std::string name, std::int64_t from, std::int64_t to)
      : Block(std::move(name)), conv_(*this, "", from, to, 1), bias_(parameter("bias", {to}, {})) {}
  at::Tensor forward(const at::Tensor& x, Mode) override { return max_pool(at::relu(conv_(x, bias_))); }

 private:
  Conv3x3 conv_;
  const at::Tensor& bias_;
};

/// Convolution, batch norm, rectifier and, where the stage ends, pooling. The first one pads the picture to `side` x `side`.
class VggBlock final : public Block {
 public:
  struct Sizes {
    std::int64_t from{};
    std::int64_t to{};
    bool pools{};
    std::array<std::int64_t, 4> padding{};  // left, right, top, bottom
  };
  VggBlock(std::string name, Sizes sizes)
      : Block(std::move(name)), conv_(*this, "conv.", sizes.from, sizes.to, 1), norm_(*this, "norm.", sizes.to), sizes_(sizes) {}
  at::Tensor forward(const at::Tensor& x, Mode mode) override {
    const bool pads = sizes_.padding != std::array<std::int64_t, 4>{};
    const at::Tensor y = at::relu(norm_(conv_(pads ? at::constant_pad_nd(x, sizes_.padding) : x), mode));
    return sizes_.pools ? max_pool(y) : y;
  }

 private:
  Conv3x3 conv_;
  BatchNorm norm_;
  Sizes sizes_;
};

/// The next multiple of 32. VGG halves the picture five times; of 28x28 pixels one would be left, and batch norm needs more than one value
/// per channel.
std::int64_t padded(std::int64_t side) { return (side + 31) / 32 * 32; }

}  // namespace

Blocks cnn(const ModelSpec& spec, const SampleShape& data) {
  const auto width = static_cast<std::int64_t>(spec.width);
  const std::int64_t pixels = (data.height / 4) * (data.width / 4), units = 8 * width;
  Blocks blocks;
  blocks.push_back(std::make_unique<ConvPool>("conv1", data.channels, width));
  blocks.push_back(std::make_unique<ConvPool>("conv2", width, 2 * width));
  blocks.push_back(std::make_unique<LinearBlock>("linear1", 2 * width * pixels, units, LinearBlock::Then::relu));
  blocks.push_back(std::make_unique<LinearBlock>("linear2", units, data.classes, LinearBlock::Then::nothing));
  return blocks;
}

Blocks vgg11(const ModelSpec& spec, const SampleShape& data) {
  struct Conv {
    std::int64_t times_width;
    bool pools;
  };
  constexpr std::array<Conv, 8> plan{{{1, true}, {2, true}, {4, false}, {4, true}, {8, false}, {8, true}, {8, false}, {8, true}}};
  const auto width = static_cast<std::int64_t>(spec.width);
  const std::int64_t more_columns = padded(data.width) - data.width, more_rows = padded(data.height) - data.height;

  Blocks blocks;
  std::int64_t from = data.channels;
  VggBlock::Sizes sizes{.padding = {more_columns / 2, more_columns - more_columns / 2, more_rows / 2, more_rows - more_rows / 2}};
  const std::uint64_t times = std::max<std::uint64_t>(spec.depth, 1);
  for (const Conv& conv : plan)
    for (std::uint64_t i = 0; i < times; ++i) {
      sizes.from = from;
      sizes.to = conv.times_width * width;
      sizes.pools = conv.pools && i + 1 == times;
      blocks.push_back(std::make_unique<VggBlock>(fmt::format("conv{}", blocks.size() + 1), sizes));
      sizes.padding = {};
      from = sizes.to;
    }
  const std::int64_t pixels = (padded(data.width) / 32) * (padded(data.height) / 32);
  blocks.push_back(std::make_unique<LinearBlock>("classifier", from * pixels, data.classes, LinearBlock::Then::nothing));
  return blocks;
}

}  // namespace motley::learn
