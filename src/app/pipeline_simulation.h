// One job as a pipeline in virtual time: plans the cut, makes the stages, runs them, sums up.
#pragma once
#include "app/simulation.h"
#include "policy/strategies.h"

namespace motley::app {

/// naive-mp, gpipe, 1f1b, pipedream, adapipe.
[[nodiscard]] bool is_pipeline(const policy::StrategySpec& strategy);

/// Knobs that a pipeline does not take, in the words of an error; empty: all is well.
[[nodiscard]] std::vector<policy::KnobFault> pipeline_knob_faults(const policy::StrategySpec& strategy);

/// As simulate(), for those.
Result<RunResult> simulate_pipeline(const Job& job, const Material& material, const SimulationOptions& options);

}  // namespace motley::app
