// One job in virtual time: joins data, model, strategy and world, runs them, and sums up what happened. Threads may each run their own.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/job.h"
#include "base/result.h"
#include "sim/world.h"
#include "trace/sinks.h"
#include "trace/summary.h"
#include "trace/timeline.h"

namespace motley::app {

/// What all runs of one job share; loaded once.
struct Material {
  std::shared_ptr<const learn::DataSet> data;  // none: timing only
  std::uint64_t epoch_samples = 0;
};
Result<Material> load_material(const Job& job);

struct SimulationOptions {
  policy::StrategySpec strategy;
  std::string label;  // how the user wrote the strategy
  std::uint64_t seed = 0;
  trace::Sink* also = nullptr;                 // hears everything too
  std::function<void(double share)> progress;  // of all samples; may be empty
};

struct SimulationResult {
  std::string label;
  std::uint64_t seed = 0;
  sim::Ending ending;
  trace::Summary summary;
  std::vector<trace::Timeline::Lane> timeline;  // a few steps from the middle
  std::string trace_sha256;
  double sum_of_parts = 0;
  std::vector<float> values;  // the final model; empty: timing only
};

/// Fails when the strategy or the model cannot be made, or when torch gives up (memory, mostly); a training that went wrong is a result,
/// see ending.why.
Result<SimulationResult> simulate(const Job& job, const Material& material, const SimulationOptions& options);

}  // namespace motley::app
