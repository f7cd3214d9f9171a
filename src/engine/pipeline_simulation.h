// One job as a pipeline in virtual time: plans the cut, makes the stages, runs them, sums up.
#pragma once
#include "engine/simulation.h"

namespace motley::engine {

/// As simulate(), for pipelines.
Result<RunResult> simulate_pipeline(const config::Job& job, const Material& material, const SimulationOptions& options);

}  // namespace motley::engine
