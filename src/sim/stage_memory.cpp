#include "sim/stage_memory.h"

#include <set>

namespace motley::sim {

double StageMemory::stashed_bytes(std::uint64_t committed) const {
  std::set<Used> stashed;
  for (const auto& [micro, used] : used_)
    if (used != Used{committed, false}) stashed.insert(used);
  return static_cast<double>(stashed.size()) * parameter_bytes_;
}

}  // namespace motley::sim
