// The strategies that train a pipeline, and the knobs that they take.
#pragma once

#include <vector>

#include "policy/spec.h"
#include "policy/strategies.h"

namespace motley::config {

/// naive-mp, gpipe, 1f1b, pipedream, 2bw, adapipe.
[[nodiscard]] bool is_pipeline(const policy::StrategySpec& strategy);
/// An error for each knob that a pipeline does not take; empty: none.
[[nodiscard]] std::vector<policy::KnobFault> pipeline_knob_faults(const policy::StrategySpec& strategy);

}  // namespace motley::config
