// Objective: the function that training minimises, as the user's program computes it: the mean of a loss over the samples of a training
// set.
#pragma once
#include <cstdint>
#include <functional>
#include <span>

namespace motley {

/// Sums over some samples; not means.
struct LossSum {
  double loss = 0;            // sum over the samples
  std::uint64_t correct = 0;  // samples that are classified correctly; 0 where there are no classes
  std::uint64_t samples = 0;
};

/// A model of `parameters` floats over a training set of `samples` samples. Workers and chief of one training must describe the same
/// function. The members of one Objective are called by one thread at a time; what they throw ends the training of that worker.
struct Objective {
  std::uint64_t parameters = 0;
  std::uint64_t samples = 0;

  /// Fills `values` (all parameters) with the initial model of this seed. Required.
  std::function<void(std::uint64_t seed, std::span<float> values)> initialize{};

  /// Writes the mean gradient over `batch` (indices below `samples`, at least one) at `values` to `gradient`. Equal arguments must give
  /// equal bits where a run is to be repeatable. Required.
  std::function<LossSum(std::span<const float> values, std::span<const std::uint32_t> batch, std::span<float> gradient)> gradient{};

  /// Loss and accuracy at `values` over an evaluation set; called in the chief only. Empty: no evaluation, no target accuracy.
  std::function<LossSum(std::span<const float> values)> evaluate{};
};

/// Called once by the chief and once by each worker of a process: every thread that computes has an Objective of its own.
using MakeObjective = std::function<Objective()>;

}  // namespace motley
