// Where real mathematics comes from. Whoever opens a cluster, simulated or real, gives it one; the drivers know nothing of models or data.
#pragma once
#include <cstdint>
#include <span>
#include <stdexcept>

#include "base/flow.h"

namespace motley::store {

struct Loss {
  double sum = 0;  // over the samples
  std::uint64_t correct = 0;
  std::uint64_t samples = 0;
};

/// A step with so many samples does not fit into the device's memory; nothing was computed.
struct OutOfMemory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One owner thread.
class GradientSource {
 public:
  virtual ~GradientSource() = default;
  virtual void initialize(std::uint64_t seed, std::span<float> values) = 0;
  /// Mean gradient over `samples` (indices of the training set) at `values`; for statistics their change. Same inputs, same bits.
  /// Asks `flow` for values before it reads them and tells it of gradients as they are final; given up by it, `out` is worth nothing.
  /// Throws OutOfMemory.
  virtual Loss gradient(std::span<const float> values, std::span<const std::uint32_t> samples, std::span<float> out, Flow& flow) = 0;
  virtual Loss evaluate(std::span<const float> values) = 0;
};

}  // namespace motley::store
