#include "library/objective_source.h"

#include <new>
#include <stdexcept>
#include <string>

namespace motley::library {
namespace {

/// Runs a function of the program; its exceptions become those that a step executor expects.
template <class Function>
auto call(const char* name, Function function) {
  try {
    return function();
  } catch (const std::bad_alloc& failure) {
    throw OutOfMemory(failure.what());
  } catch (const std::exception& failure) {
    throw ComputationFailed(std::string("the objective's ") + name + " failed: " + failure.what());
  }
}

StepResult result_of(const LossSum& sum) { return {.loss_sum = sum.loss, .correct = sum.correct, .samples = sum.samples}; }

}  // namespace

Outcome check_objective(const Objective& objective) {
  if (objective.parameters == 0) return bad_input("objective: found 0 parameters, expected at least 1");
  if (objective.samples == 0) return bad_input("objective: found 0 samples, expected at least 1");
  if (!objective.initialize) return bad_input("objective: found no initialize function, expected one");
  if (!objective.gradient) return bad_input("objective: found no gradient function, expected one");
  return Done{};
}

void ObjectiveSource::initialize(std::uint64_t seed, std::span<float> values) {
  call("initialize", [&] { objective_.initialize(seed, values); });
}

StepResult ObjectiveSource::gradient(std::span<const float> values, std::span<const std::uint32_t> samples, std::span<float> out,
                                     StepIo& io) {
  if (!io.wait_for(0, values.size())) return {};
  StepResult result = call("gradient", [&] { return result_of(objective_.gradient(values, samples, out)); });
  result.samples = samples.size();
  io.gradient_ready(0, out.size());
  return result;
}

StepResult ObjectiveSource::evaluate(std::span<const float> values) {
  return call("evaluate", [&] { return result_of(objective_.evaluate(values)); });
}

Result<engine::ProgramSource> program_source(const MakeObjective& make_objective) {
  Objective objective;
  try {
    objective = make_objective();
  } catch (const std::exception& failure) {
    return bad_input(std::string("the objective cannot be made: ") + failure.what());
  }
  if (const Outcome good = check_objective(objective); !good) return good.error();
  engine::ProgramSource program{.source = nullptr, .values = objective.parameters, .samples = objective.samples};
  program.source = std::make_unique<ObjectiveSource>(std::move(objective));
  return program;
}

}  // namespace motley::library
