// States and groups of a finished run as the report draws them: nodes and reasons get their names here.
#pragma once
#include "cli/run_result.h"
#include "config/job.h"
#include "report/state_timelines.h"

namespace motley::cli {

/// Empty when the run told no states.
[[nodiscard]] report::States states_of(const config::Job& job, const RunResult& run);

/// Empty when the run told no groups.
[[nodiscard]] report::Groups groups_of(const config::Job& job, const RunResult& run);

}  // namespace motley::cli
