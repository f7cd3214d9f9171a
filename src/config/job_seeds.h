// Parses `--seeds`: the seeds that a comparison runs.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace motley::config {

/// "5" means 0 to 4, "10..12" means 10, 11 and 12. At least one seed, at most 10,000.
Result<std::vector<std::uint64_t>> read_seeds(const std::string& text);

}  // namespace motley::config
