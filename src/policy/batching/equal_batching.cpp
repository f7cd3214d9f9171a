#include "policy/batching/equal_batching.h"

namespace motley::policy {

std::uint32_t EqualBatching::batch(WorkerId worker) const {
  if (plan_.empty()) plan_ = allocator_.equal_shares(global_batch_);
  return plan_[allocator_.rank(worker)];
}

}  // namespace motley::policy
