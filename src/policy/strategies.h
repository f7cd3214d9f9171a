// The table of strategies: each a preset of mechanisms under a name. A new strategy is one more row here.
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

/// What a strategy needs to know of the job.
struct JobFacts {
  std::uint32_t global_batch = 128;
  double momentum = 0.9;
  Traffic traffic{};
  bool whole_steps = false;  // the model normalizes over its batch: a step in pieces would be another step
  bool warms_up = false;     // the learning rate rises at first
};

/// One strategy's name and what it promises, for help texts and reports.
struct Preset {
  std::string_view name;
  std::string_view rule;       // what it does
  std::string_view guarantee;  // what it promises
  std::string_view cost;       // what that costs
};

[[nodiscard]] std::span<const Preset> presets();
[[nodiscard]] std::span<const std::string_view> strategy_names();

/// One knob that is set wrongly for its strategy, in the words of an error: found this, expected that.
struct KnobFault {
  std::string_view knob;  // one that the user has set
  std::string found;
  std::string expected;
};
/// Knobs that this strategy does not take, and bounds that cross. Of an unknown strategy nothing is said.
[[nodiscard]] std::vector<KnobFault> knob_faults(const StrategySpec& spec);

/// Refused: an unknown name (with the list of known ones), and the first of knob_faults().
Result<Strategy> make_strategy(const StrategySpec& spec, const JobFacts& job);

}  // namespace motley::policy
