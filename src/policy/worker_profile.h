// A worker that joins, and what its steps and transfers cost.
#pragma once
#include "base/ids.h"
#include "cluster/device_profile.h"

namespace motley::policy {

struct WorkerProfile {
  WorkerId worker{};
  cluster::DeviceProfile device{};
};

}  // namespace motley::policy
