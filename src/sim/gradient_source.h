// Where real mathematics enters the virtual world. Whoever opens a world gives it one; the simulator knows nothing of models or data.
#pragma once
#include <cstdint>
#include <span>

namespace motley::sim {

struct Loss {
  double sum = 0;  // over the samples
  std::uint64_t correct = 0;
  std::uint64_t samples = 0;
};

class GradientSource {
 public:
  virtual ~GradientSource() = default;
  virtual void initialize(std::uint64_t seed, std::span<float> values) = 0;
  /// Mean gradient over `samples` (indices of the training set) at `values`; for statistics their change. Same inputs, same bits.
  virtual Loss gradient(std::span<const float> values, std::span<const std::uint32_t> samples, std::span<float> out) = 0;
  virtual Loss evaluate(std::span<const float> values) = 0;
};

}  // namespace motley::sim
