// ObjectiveSource: a program's Objective as the engine's source of gradients.
#pragma once
#include <motley/objective.h>

#include "base/gradient_source.h"
#include "base/result.h"
#include "engine/process_setup.h"

namespace motley::library {

/// Refuses an objective without parameters, samples or one of the required functions.
Outcome check_objective(const Objective& objective);

/// Needs an objective that check_objective() accepts. What its functions throw becomes OutOfMemory (std::bad_alloc) or ComputationFailed.
class ObjectiveSource final : public GradientSource {
 public:
  explicit ObjectiveSource(Objective objective) : objective_(std::move(objective)) {}
  void initialize(std::uint64_t seed, std::span<float> values) override;
  StepResult gradient(std::span<const float> values, std::span<const std::uint32_t> samples, std::span<float> out, StepIo& io) override;
  /// Needs Objective::evaluate.
  StepResult evaluate(std::span<const float> values) override;

 private:
  Objective objective_;
};

/// The objective made for one worker.
Result<engine::ProgramSource> program_source(const MakeObjective& make_objective);

}  // namespace motley::library
