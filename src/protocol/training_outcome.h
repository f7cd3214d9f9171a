// The end of a training, real or simulated.
#pragma once
#include <cstdint>

#include "base/time.h"
#include "protocol/chief.h"

namespace motley::protocol {

struct TrainingOutcome {
  EndReason why{};
  Instant ended{};
  std::uint64_t events = 0;  // handled by the driver
  std::uint64_t bytes_pushed = 0;
  std::uint64_t bytes_pulled = 0;
  std::uint64_t updates = 0;
  std::uint64_t samples = 0;  // counted
  std::uint32_t closed_epochs = 0;
};

}  // namespace motley::protocol
