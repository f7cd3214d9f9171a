// How parameters are cut into slices, where it is not as usual.
#pragma once

namespace motley {

/// How slices are made and which go first, where it is not as usual: as most systems do it, to be compared with.
struct LayoutOptions {
  bool whole_tensors = false;   // each tensor is one slice, whatever its size
  bool backward_order = false;  // both ways in the order in which backward makes them, the last layer first
};

}  // namespace motley
