#include "policy/load_equal.h"

#include <algorithm>

namespace motley::policy {

std::uint32_t LoadEqual::batch(WorkerId worker) const {
  const auto count = static_cast<std::uint32_t>(roster_.workers().size());
  const std::uint32_t share = global_batch_ / count + (roster_.rank(worker) < global_batch_ % count ? 1 : 0);
  return std::max(share, 1U);
}

}  // namespace motley::policy
