// Strategies that train a pipeline: which they are, and which knobs they take.
#pragma once

#include <vector>

#include "policy/spec.h"
#include "policy/strategies.h"

namespace motley::config {

/// naive-mp, gpipe, 1f1b, pipedream, 2bw, adapipe.
[[nodiscard]] bool is_pipeline(const policy::StrategySpec& strategy);
/// Knobs that a pipeline does not take, in the words of an error; empty: all is well.
[[nodiscard]] std::vector<policy::KnobFault> pipeline_knob_faults(const policy::StrategySpec& strategy);

}  // namespace motley::config
