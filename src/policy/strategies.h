// The table of strategies: each a preset of mechanisms under a name. A new strategy is one more row here.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "policy/spec.h"
#include "policy/strategy.h"

namespace motley::policy {

/// What a strategy needs to know of the job.
struct Setting {
  std::uint32_t global_batch = 128;
  double momentum = 0.9;
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

/// Refused: an unknown name (with the list of known ones), a knob that this strategy does not take (with those that it does), bounds that
/// cross.
Result<Strategy> make_strategy(const StrategySpec& spec, const Setting& setting);

}  // namespace motley::policy
