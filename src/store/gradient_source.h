// Where real mathematics comes from. Whoever opens a cluster, simulated or real, gives it one; the drivers know nothing of models or data.
#pragma once
#include <cstdint>
#include <span>
#include <stdexcept>

#include "base/step_io.h"

namespace motley::store {

struct Loss {
  double sum = 0;  // over the samples
  std::uint64_t correct = 0;
  std::uint64_t samples = 0;
  /// Of the gradient or the way that comes with it, over the parameters, where a device has counted it in passing; below 0: nobody has.
  double squared_norm = -1;
  bool coded = false;   // what comes with it is, as the flow asked for, and was counted
  double residual = 0;  // if so: what rounding has kept back, as a part of it
};

/// A step with so many samples does not fit into the device's memory; nothing was computed.
struct OutOfMemory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The numbers of a local model on a device with memory of its own, where it stays between rounds; see LocalModel, which decides what is
/// done. SGD with Nesterov's momentum. Ranges are [first, first + size) of the flat buffer. Steps throw OutOfMemory.
class LocalSgd {
 public:
  virtual ~LocalSgd() = default;
  /// The model of now, and no momentum.
  virtual void begin(std::span<const float> values) = 0;
  virtual void put(std::uint64_t first, std::span<const float> values) = 0;
  /// The values, and `kept_fraction` of the way of the last round (of statistics all); the momentum is `kept_fraction` of what it was.
  virtual void put_stale(std::uint64_t first, std::span<const float> values, double kept_fraction) = 0;
  virtual void begin_round() = 0;
  /// Newer values in mid-round, and `kept_fraction` of the way so far, which still counts whole.
  virtual void merge(std::uint64_t first, std::span<const float> values, double kept_fraction) = 0;
  struct Rule {
    double rate = 0;
    double momentum = 0;
    double weight_decay = 0;
  };
  virtual void step(std::span<const std::uint32_t> samples, const Rule& rule) = 0;
  /// What was put and merged lately is a whole model again. When the round is over, update_norm() is the squared distance of its parameters
  /// from those of the model that was watched before.
  virtual void watch() = 0;
  [[nodiscard]] virtual double update_norm() const = 0;
  /// The way of the round, coded if that is wanted and can be done (see StepIo), and the loss of its steps.
  virtual Loss delta(std::span<float> out, const GradientEncoding* coding) = 0;
};

/// One owner thread.
class GradientSource {
 public:
  virtual ~GradientSource() = default;
  virtual void initialize(std::uint64_t seed, std::span<float> values) = 0;
  /// Mean gradient over `samples` (indices of the training set) at `values`; for statistics their change. Same inputs, same bits.
  /// Asks `io` for values before it reads them and tells it of gradients as they are final; given up by it, `out` is worth nothing.
  /// Throws OutOfMemory.
  virtual Loss gradient(std::span<const float> values, std::span<const std::uint32_t> samples, std::span<float> out, StepIo& io) = 0;
  virtual Loss evaluate(std::span<const float> values) = 0;
  /// Where local steps are best taken; null: with gradient(). Lives with the source.
  virtual LocalSgd* local_steps() { return nullptr; }
};

}  // namespace motley::store
