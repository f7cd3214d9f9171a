// What one stage of a pipeline puts out and the next one reads, or the gradient of it.
#pragma once
#include <cstdint>
#include <vector>

namespace motley {

struct Activation {
  std::vector<float> values;
  std::vector<std::int64_t> shape;  // samples first
};

}  // namespace motley
