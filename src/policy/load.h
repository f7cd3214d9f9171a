// Loads: how many samples each worker gets for one step, so that all of them together make the global batch.
#pragma once
#include <cstdint>
#include <span>

#include "base/ids.h"
#include "policy/monitor.h"
#include "policy/roster.h"

namespace motley::policy {

class Load {
 public:
  virtual ~Load() = default;
  virtual void joined(std::span<const WorkerId> workers) = 0;
  virtual void left(WorkerId worker) = 0;
  /// A global update was made: time to think again, for loads that do.
  virtual void updated(const Monitor& monitor) = 0;
  /// Samples for this worker's next step; at least 1.
  [[nodiscard]] virtual std::uint32_t batch(WorkerId worker) const = 0;
};

}  // namespace motley::policy
