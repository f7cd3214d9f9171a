// What is known of a finished run, virtual or real.
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

/// What only pipelines have.
struct PipelineFigures {
  double steady_samples_per_second = 0;  // where nothing fills or drains
  double ratio_to_ideal = 0;             // of what the slowest stage or link of the cut allows
  double utilization = 0;                // of all stages, where nothing fills or drains
  double busiest = 0;                    // the same of the stage that is busiest
  double bubble_share = 0;
  double peak_stash_bytes = 0;     // of all stages
  double planned_stash_bytes = 0;  // the same, as it was foretold
  std::uint64_t max_delay = 0;     // updates
  std::uint64_t repartitions = 0;  // how often the model was cut anew
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
