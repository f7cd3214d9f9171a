// An event: the driver of a machine was itself suspended.
#pragma once
#include "base/time.h"

namespace motley::protocol {

/// The driver was suspended for this long (its process was stopped, or its host slept) and could receive nothing. Silence during that time
/// is not held against any peer. Precedes all events received afterwards.
struct DriverPaused {
  Duration time{};
};

}  // namespace motley::protocol
