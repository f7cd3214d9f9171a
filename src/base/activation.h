// The output of one pipeline stage, which the next stage reads, or the gradient of that output.
#pragma once
#include <cstdint>
#include <vector>

namespace motley {

struct Activation {
  std::vector<float> values;
  std::vector<std::int64_t> shape;  // samples first
};

}  // namespace motley
