// RunResult: outcome, summary, history and timelines of a finished run, simulated or real.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "protocol/training_outcome.h"
#include "trace/pipeline.h"
#include "trace/run_history.h"
#include "trace/state_timelines.h"
#include "trace/summary.h"
#include "trace/timeline.h"

namespace motley::engine {

/// Figures of pipelines.
struct PipelineFigures {
  double steady_samples_per_second = 0;  // in the steady state
  double ratio_to_ideal = 0;             // relative to the limit of the slowest stage or link of the cut
  double utilization = 0;                // of all stages, in the steady state
  double busiest = 0;                    // the same of the busiest stage
  double bubble_share = 0;
  double peak_stash_bytes = 0;     // of all stages
  double planned_stash_bytes = 0;  // the same, as predicted
  std::uint64_t max_delay = 0;     // updates
  std::uint64_t repartitions = 0;  // new cuts during the run
  std::vector<trace::Pipeline::Stage> stages;
  std::vector<trace::Pipeline::Box> boxes;  // of a few mini-batches from the middle
};

struct RunResult {
  std::string label;  // how the user wrote the strategy
  std::uint64_t seed = 0;
  protocol::TrainingOutcome outcome;
  trace::Summary summary;
  trace::RunHistory history;
  trace::StateTimelines state_timelines;
  std::vector<trace::Timeline::Lane> timeline;  // a few steps from the middle
  std::string trace_sha256;
  double sum_of_parts = 0;
  std::optional<PipelineFigures> pipeline;
  std::vector<float> values;  // the final model of a simulation; empty: timing only, or a real run, whose folder has it
};

}  // namespace motley::engine
