// The table of strategies: each is a preset of mechanisms with a name. A new strategy is one more row.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policy/spec.h"
#include "policy/strategy.h"

namespace motley::policy {

/// The facts of a job that strategies use.
struct JobFacts {
  std::uint32_t global_batch = 128;
  double momentum = 0.9;
  Traffic traffic{};
  bool whole_steps = false;  // the model normalizes over its batch: micro-batches would change the step
  bool warms_up = false;     // the learning rate rises at first
};

/// A strategy's name and properties, for help texts and reports.
struct Preset {
  std::string_view name;
  std::string_view rule;
  std::string_view guarantee;
  std::string_view cost;
};

[[nodiscard]] std::span<const Preset> presets();
[[nodiscard]] std::span<const std::string_view> strategy_names();

/// A knob that its strategy does not accept, as an error reports it.
struct KnobFault {
  std::string_view knob;  // set by the user
  std::string found;
  std::string expected;
};
/// Knobs that this strategy does not take, and bounds that cross. Empty for an unknown strategy.
[[nodiscard]] std::vector<KnobFault> knob_faults(const StrategySpec& spec);

/// Fails for an unknown name (with the list of known ones) and for the first of knob_faults().
Result<Strategy> make_strategy(const StrategySpec& spec, const JobFacts& job);

}  // namespace motley::policy
