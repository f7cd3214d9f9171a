// Time in which the driver of a machine itself stood still.
#pragma once
#include "base/time.h"

namespace motley::protocol {

/// The driver stood still for so long (its process was stopped, its host slept) and could hear nobody meanwhile. Whoever was waited for at
/// that time is not to blame for it. Comes before anything else that is heard afterwards.
struct DriverPaused {
  Duration time{};
};

}  // namespace motley::protocol
