// Generates docs/job.md, the reference of all keys of a job file, from the reader's own key table. `motley doc job` prints it.
#pragma once
#include <string>

#include "config/known_kinds.h"

namespace motley::config {

[[nodiscard]] std::string job_reference(const KnownKinds& known = {});

}  // namespace motley::config
