// Options for cutting parameters into slices.
#pragma once

namespace motley {

/// Slices as most other systems make and order them, for comparisons.
struct LayoutOptions {
  bool whole_tensors = false;   // each tensor is one slice of any size
  bool backward_order = false;  // slices are sent in both directions in the order in which backward makes them, the last layer first
};

}  // namespace motley
