#include "policy/load_equal.h"

namespace motley::policy {

std::uint32_t LoadEqual::batch(WorkerId worker) const {
  if (plan_.empty()) plan_ = crew_.equal_shares(global_batch_);
  return plan_[crew_.rank(worker)];
}

}  // namespace motley::policy
