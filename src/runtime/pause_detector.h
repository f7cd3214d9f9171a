// Detects that the event loop has not run for a while, because the process was stopped or its machine was busy: messages of peers have
// waited meanwhile, so that the peers must not be expelled for silence.
#pragma once
#include <algorithm>
#include <utility>

#include "base/time.h"

namespace motley::runtime {

class PauseDetector {
 public:
  /// The event loop is expected to run twice in each `heartbeat`; a peer is expelled after `deadline` at the earliest.
  PauseDetector(Duration heartbeat, Duration deadline) : tolerated_(std::max(heartbeat, deadline / 2)) {}

  /// How long the event loop has not run; zero: not long enough to matter.
  [[nodiscard]] Duration paused(Instant now) const {
    const Duration missed = now - last_run_;
    return missed > tolerated_ ? missed : Duration{0};
  }
  /// The same. The event loop runs at `now`.
  Duration run(Instant now) {
    const Duration missed = paused(now);
    last_run_ = now;
    return missed;
  }

 private:
  Duration tolerated_;
  Instant last_run_{};
};

}  // namespace motley::runtime
