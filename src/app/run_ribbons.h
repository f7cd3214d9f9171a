// States and groups of a finished run as the report draws them: nodes and reasons get their names here.
#pragma once
#include "app/job.h"
#include "app/run_result.h"
#include "report/ribbons.h"

namespace motley::app {

/// Empty when the run told no states.
[[nodiscard]] report::States states_of(const Job& job, const RunResult& run);

/// Empty when the run told no groups.
[[nodiscard]] report::Groups groups_of(const Job& job, const RunResult& run);

}  // namespace motley::app
