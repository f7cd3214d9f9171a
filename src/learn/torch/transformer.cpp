// A small causal transformer over characters, after GPT-2: pre-norm, learned positions, initial deviation 0.02, divided by sqrt(2 x depth)
// in the layers that write to the residual stream; without dropout.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "learn/torch/layers.h"
#include "learn/torch/models.h"

namespace motley::learn {

namespace {

constexpr Init small{0, 0.02};

class Embedding final : public Block {
 public:
  Embedding(std::string name, const SampleShape& data, std::int64_t width)
      : Block(std::move(name)),
        characters_(parameter("characters", {data.classes, width}, small)),
        positions_(parameter("positions", {data.context, width}, small)) {}
  at::Tensor forward(const at::Tensor& codes, Mode) override { return at::embedding(characters_, codes) + positions_; }

 private:
  const at::Tensor& characters_;
  const at::Tensor& positions_;
};

struct AttentionSizes {
  std::int64_t width{};
  std::int64_t heads{};
  std::int64_t context{};
  Init onto_stream;
};

class TransformerBlock final : public Block {
 public:
  TransformerBlock(std::string name, const AttentionSizes& sizes)
      : Block(std::move(name)),
        norm1_(*this, "norm1.", sizes.width),
        to_qkv_(*this, "qkv.", sizes.width, 3 * sizes.width, small),
        project_(*this, "attended.", sizes.width, sizes.width, sizes.onto_stream),
        norm2_(*this, "norm2.", sizes.width),
        up_(*this, "up.", sizes.width, 4 * sizes.width, small),
        down_(*this, "down.", 4 * sizes.width, sizes.width, sizes.onto_stream),
        heads_(sizes.heads),
        future_(at::full({sizes.context, sizes.context}, -std::numeric_limits<float>::infinity()).triu(1)) {}

  at::Tensor forward(const at::Tensor& x, Mode) override {
    future_ = future_.to(x.device(), x.scalar_type());  // copies at the first call only
    const at::Tensor y = x + project_(attend(norm1_(x)));
    return y + down_(at::gelu(up_(norm2_(y))));
  }

 private:
  /// softmax(q k' / sqrt(d) + no future) v for each head; [batch, context, width] in and out.
  [[nodiscard]] at::Tensor attend(const at::Tensor& x) const {
    const std::int64_t batch = x.size(0), context = x.size(1), width = x.size(2), each = width / heads_;
    const at::Tensor qkv = to_qkv_(x).view({batch, context, 3, heads_, each}).permute({2, 0, 3, 1, 4});
    const at::Tensor scores = at::matmul(qkv[0], qkv[1].transpose(2, 3)) * (1 / std::sqrt(static_cast<double>(each))) + future_;
    return at::matmul(scores.softmax(3), qkv[2]).transpose(1, 2).reshape({batch, context, width});
  }
  LayerNorm norm1_;
  Linear to_qkv_;
  Linear project_;
  LayerNorm norm2_;
  Linear up_;
  Linear down_;
  std::int64_t heads_;
  at::Tensor future_;  // -inf above the diagonal
};

/// One row of scores for each character.
class CharacterHead final : public Block {
 public:
  CharacterHead(std::string name, std::int64_t width, std::int64_t characters)
      : Block(std::move(name)), norm_(*this, "norm.", width), linear_(*this, "linear.", width, characters, small) {}
  at::Tensor forward(const at::Tensor& x, Mode) override { return linear_(norm_(x)).flatten(0, 1); }

 private:
  LayerNorm norm_;
  Linear linear_;
};

}  // namespace

Blocks transformer(const ModelSpec& spec, const SampleShape& data) {
  const auto width = static_cast<std::int64_t>(spec.width);
  const std::uint64_t depth = spec.depth == 0 ? 2 : spec.depth;
  const Init onto_stream{0, small.deviation / std::sqrt(2.0 * static_cast<double>(depth))};
  const AttentionSizes sizes{width, static_cast<std::int64_t>(spec.heads), data.context, onto_stream};
  Blocks blocks;
  blocks.push_back(std::make_unique<Embedding>("embedding", data, width));
  for (std::uint64_t i = 0; i < depth; ++i) blocks.push_back(std::make_unique<TransformerBlock>(fmt::format("block{}", i + 1), sizes));
  blocks.push_back(std::make_unique<CharacterHead>("head", width, data.classes));
  return blocks;
}

}  // namespace motley::learn
