// A block is a layer, or a few layers that belong together such as a residual unit. A model is a list of blocks, and its forward is their
// composition. A pipeline cuts the list into stages, never a block. The loss is no block (loss_function.h).
#pragma once
#include <ATen/ATen.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/model_shape.h"

namespace motley::learn {

enum class Mode { training, evaluation };

/// Distribution of initial values: gaussian; constant where the deviation is 0.
struct Init {
  double mean{};
  double deviation{};
};

/// One tensor that a block has declared. The network or device that runs the model provides its memory.
struct Slot {
  std::string name;  // within the block: "conv1.weight"
  std::vector<std::int64_t> shape;
  TensorKind kind{};
  Init init;
  bool exact{};  // stays in fp32 where weights are computed with in bf16: norms
  at::Tensor tensor;
};

class Block {
 public:
  explicit Block(std::string name) : name_(std::move(name)) {}
  virtual ~Block() = default;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  /// In training, batch norm normalises by the batch and updates its statistics; in evaluation it normalises by the statistics.
  virtual at::Tensor forward(const at::Tensor& x, Mode mode) = 0;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::deque<Slot>& slots() { return slots_; }

  /// Declares a tensor, in forward order. The reference is valid as long as the block; the tensor is defined before the first forward.
  const at::Tensor& parameter(std::string name, std::vector<std::int64_t> shape, Init init, bool exact = false) {
    return slots_.push_back({std::move(name), std::move(shape), TensorKind::parameter, init, exact, {}}), slots_.back().tensor;
  }
  const at::Tensor& statistic(std::string name, std::vector<std::int64_t> shape, Init init) {
    return slots_.push_back({std::move(name), std::move(shape), TensorKind::statistic, init, true, {}}), slots_.back().tensor;
  }

 private:
  std::string name_;
  std::deque<Slot> slots_;  // a deque: addresses stay
};

using Blocks = std::vector<std::unique_ptr<Block>>;

}  // namespace motley::learn
