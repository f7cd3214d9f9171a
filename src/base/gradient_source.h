// The interface of forward and backward passes. Drivers (the simulator, a worker process) compute through it and know neither model nor
// data set; learn implements it with torch, tests implement it by hand.
#pragma once
#include <cstdint>
#include <span>
#include <stdexcept>

#include "base/step_io.h"

namespace motley {

/// The result of one computation, beside its gradient or delta.
/// For text, a sample is a sequence: `loss_sum` adds each sequence's mean loss per character, `correct` is the share of characters
/// predicted correctly times the sequences, rounded. An evaluation counts predicted characters as samples.
struct StepResult {
  double loss_sum = 0;        // over the samples
  std::uint64_t correct = 0;  // samples whose highest score is that of their class
  std::uint64_t samples = 0;
  double squared_norm = -1;  // of the gradient or delta over the parameters; below 0: not computed
  bool encoded = false;      // the gradient or delta is encoded as StepIo::gradient_encoding() asked; squared_norm is known
  double residual = 0;       // if encoded: norm of what rounding kept back, relative to the norm of what was encoded
};

/// A step does not fit into the device's memory; nothing was computed. Fewer samples may fit.
struct OutOfMemory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The library that computes, or the system below it, failed in another way.
struct ComputationFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A local model on a device with memory of its own, which stays there between rounds. SGD with Nesterov momentum; statistics change as
/// the steps change them. store::LocalModel decides what is done. Ranges are [first, first + size) of the flat buffer.
/// Not thread-safe: one owner thread, that of its GradientSource. Every function may throw OutOfMemory or ComputationFailed.
class LocalSgd {
 public:
  virtual ~LocalSgd() = default;
  /// Sets the whole model; the momentum becomes 0.
  virtual void begin(std::span<const float> values) = 0;
  /// Sets the values of a range.
  virtual void put(std::uint64_t first, std::span<const float> values) = 0;
  /// Sets a range to `values` plus `kept_fraction` of the last round's delta (for statistics: all of it), and multiplies the momentum of
  /// the range by `kept_fraction`.
  virtual void put_stale(std::uint64_t first, std::span<const float> values, double kept_fraction) = 0;
  virtual void begin_round() = 0;
  /// During a round: sets a range to newer `values` plus `kept_fraction` of the delta so far, which stays in delta() as a whole.
  virtual void merge(std::uint64_t first, std::span<const float> values, double kept_fraction) = 0;
  struct Rule {
    double rate = 0;
    double momentum = 0;
    double weight_decay = 0;
  };
  /// One SGD step. On a GPU it returns while the device has at most this step and the one before left to compute.
  virtual void step(std::span<const std::uint32_t> samples, const Rule& rule) = 0;
  /// The ranges received since the last call form a whole model again. From the end of this round, update_norm() is the squared distance
  /// between its parameters and those of the model at the last call.
  virtual void watch() = 0;
  [[nodiscard]] virtual double update_norm() const = 0;
  /// Ends the round: `out` (the whole model) receives its delta, encoded unless `encoding` is null. Returns the loss of its steps.
  virtual StepResult delta(std::span<float> out, const GradientEncoding* encoding) = 0;
  StepResult delta(std::span<float> out) { return delta(out, nullptr); }
};

/// One model on one device, with its data set. Not thread-safe: one owner thread. Equal arguments give equal bits, call after call.
/// Every function may throw OutOfMemory or ComputationFailed.
class GradientSource {
 public:
  virtual ~GradientSource() = default;

  /// Fills `values` (the whole model) with the initial values of this seed.
  virtual void initialize(std::uint64_t seed, std::span<float> values) = 0;

  /// Mean gradient over `samples` (indices into the training set, at least one) at `values`.
  /// `out` (the whole model) receives the gradient of each parameter and, for each statistic, its change by this step.
  /// Calls `io.wait_for()` before it reads values and `io.gradient_ready()` when gradients are final, block by block; statistics come with
  /// the first block. When `io` gives up, it returns early and `out` is undefined.
  virtual StepResult gradient(std::span<const float> values, std::span<const std::uint32_t> samples, std::span<float> out, StepIo& io) = 0;
  /// The same with all values present and without streaming.
  StepResult gradient(std::span<const float> values, std::span<const std::uint32_t> samples, std::span<float> out) {
    NoStreaming no_streaming;
    return gradient(values, samples, out, no_streaming);
  }

  /// Loss and accuracy over the whole evaluation split, with batch norm in evaluation mode.
  virtual StepResult evaluate(std::span<const float> values) = 0;

  /// Local steps on the device itself; null: take local steps with gradient(). Owned by this object.
  virtual LocalSgd* local_sgd() { return nullptr; }
};

}  // namespace motley
