// A model is a list of blocks; its forward is their composition. The list is what a pipeline cuts into stages, so a block is
// never cut: a residual unit is one block. The loss is no block (learn/loss.h).
#pragma once
#include <ATen/ATen.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "learn/learner.h"

namespace motley::learn {

enum class Mode { training, evaluation };

/// Initial values: gaussian; with no deviation, a constant.
struct Init {
  double mean{};
  double deviation{};
};

/// One tensor that a block declared. Its memory comes later, from whoever runs the model.
struct Slot {
  std::string name;  // within the block: "conv1.weight"
  std::vector<std::int64_t> shape;
  TensorKind kind{};
  Init init;
  bool exact{};  // stays in floats where weights are rounded to fewer bits: norms
  at::Tensor tensor;
};

class Block {
 public:
  explicit Block(std::string name) : name_(std::move(name)) {}
  virtual ~Block() = default;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  /// In training, batch norm reads the batch and moves its statistics; otherwise it reads the statistics.
  virtual at::Tensor forward(const at::Tensor& x, Mode mode) = 0;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::deque<Slot>& slots() { return slots_; }

  /// Declares a tensor, in forward order; the reference stays good as long as the block and is bound before the first forward.
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
