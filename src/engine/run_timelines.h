// States and groups of a finished run as the report draws them: nodes and reasons get their names here.
#pragma once
#include "config/job.h"
#include "engine/run_result.h"
#include "report/state_timelines.h"

namespace motley::engine {

/// Empty when the run told no states.
[[nodiscard]] report::States states_of(const config::Job& job, const RunResult& run);

/// Empty when the run told no groups.
[[nodiscard]] report::Groups groups_of(const config::Job& job, const RunResult& run);

}  // namespace motley::engine
