// Simulates one job as a pipeline: plans the cut, makes the stages, runs them, summarises the result.
#pragma once
#include "engine/simulation.h"

namespace motley::engine {

/// As simulate(), for pipelines.
Result<RunResult> simulate_pipeline(const config::Job& job, const Material& material, const SimulationOptions& options);

}  // namespace motley::engine
