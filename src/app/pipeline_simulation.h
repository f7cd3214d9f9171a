// One job as a pipeline in virtual time: plans the cut, makes the stages, runs them, sums up.
#pragma once
#include "app/simulation.h"

namespace motley::app {

/// As simulate(), for pipelines.
Result<RunResult> simulate_pipeline(const Job& job, const Material& material, const SimulationOptions& options);

}  // namespace motley::app
