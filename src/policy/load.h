// Loads: how many samples each worker gets for one step, so that all of them together make the global batch. Nobody gets more than its
// memory holds; when everyone is full, the batch is smaller than the global one, and each contribution still counts b_i/B.
#pragma once
#include <cstdint>
#include <span>

#include "base/ids.h"
#include "policy/crew.h"
#include "policy/monitor.h"

namespace motley::policy {

class Load {
 public:
  virtual ~Load() = default;
  virtual void joined(std::span<const Newcomer> newcomers) = 0;
  virtual void left(WorkerId worker) = 0;
  /// A global update was made: time to think again, for loads that do.
  virtual void updated(const Monitor& monitor) = 0;
  /// Samples for this worker's next step: at least 1, at most what it said that it can hold. O(log P).
  [[nodiscard]] virtual std::uint32_t batch(WorkerId worker) const = 0;
};

}  // namespace motley::policy
