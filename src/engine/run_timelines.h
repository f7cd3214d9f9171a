// Converts states and groups of a finished run to the report's form, with the names of nodes and reasons.
#pragma once
#include "config/job.h"
#include "engine/run_result.h"
#include "report/state_timelines.h"

namespace motley::engine {

/// Empty when the run recorded no states.
[[nodiscard]] report::States states_of(const config::Job& job, const RunResult& run);

/// Empty when the run recorded no groups.
[[nodiscard]] report::Groups groups_of(const config::Job& job, const RunResult& run);

}  // namespace motley::engine
