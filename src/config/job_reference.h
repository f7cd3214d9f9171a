// docs/job.md: every key of a job file, as the reader of jobs itself describes it. `motley doc job` prints this page.
#pragma once
#include <string>

#include "config/known_kinds.h"

namespace motley::config {

[[nodiscard]] std::string job_reference(const KnownKinds& known = {});

}  // namespace motley::config
