#include "runtime/computation.h"

namespace motley::runtime {

void Computation::comes(const std::shared_ptr<IncomingParameters>& newer) {
  const std::lock_guard lock(mutex_);
  newer_ = newer;
}

std::shared_ptr<IncomingParameters> Computation::newer() {
  const std::lock_guard lock(mutex_);
  return newer_;
}

}  // namespace motley::runtime
