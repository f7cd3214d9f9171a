// When, in the course of one step, each slice's values are read and its gradient is final: what lets parameters come in while the forward
// pass runs and gradients leave while the backward pass does, on devices that are only described.
//
// Rule: of a step's work a third is forward, two thirds are backward (the gradient of the inputs and that of the weights). Forward goes
//   through the blocks in order, backward the other way; each takes its share of the model's work.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "store/layout.h"

namespace motley::store {

/// By SliceId, as parts of the step's work, 0 to 1. Empty: everything is read at the beginning and made at the end.
struct LayerTiming {
  std::vector<double> read;
  std::vector<double> gradient_ready;
  [[nodiscard]] bool empty() const { return read.empty(); }
};

/// A tensor's block, and the work of each block (any unit, > 0 in all). A slice that holds values of several blocks is read with the first
/// of them and made with the last that backward comes to, which is the same one. Statistics are read before everything and made last.
LayerTiming layer_timing(const Layout& layout, std::span<const TensorPlace> tensors, std::span<const std::uint32_t> block_of_tensor,
                         std::span<const double> work_of_block);

}  // namespace motley::store
