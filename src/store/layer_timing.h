// Estimates when, within one step, each slice's values are first read and its gradient is final. Simulated and emulated devices use it to
// overlap transfers with the forward and backward passes.
//
// Rule: a third of a step's work is forward, two thirds are backward (gradients of the inputs and of the weights). Forward runs the blocks
// in
//   order, backward in reverse; each takes its share of the model's work.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "store/layout.h"

namespace motley::store {

/// By SliceId, as fractions of the step's work, 0 to 1. Empty: all values are read at the start, all gradients ready at the end.
struct LayerTiming {
  std::vector<double> read;
  std::vector<double> gradient_ready;
  [[nodiscard]] bool empty() const { return read.empty(); }
};

/// `block_of_tensor`: each tensor's block; `work_of_block`: in any unit, not all 0. A slice with values of several blocks belongs to the
/// first of them in forward order, which is the last one in backward order. Statistics are read at the start and ready at the end.
LayerTiming layer_timing(const Layout& layout, std::span<const TensorPlace> tensors, std::span<const std::uint32_t> block_of_tensor,
                         std::span<const double> work_of_block);

}  // namespace motley::store
