// The clock of a training. No other file of the state machines or their drivers reads the time.
#pragma once
#include <chrono>

#include "base/time.h"

namespace motley::runtime {

/// Time since construction plus `before`, the time of an earlier part of the training.
class Clock {
 public:
  explicit Clock(Duration before = {}) : started_(std::chrono::steady_clock::now() - before) {}
  [[nodiscard]] Instant now() const { return Instant{std::chrono::steady_clock::now() - started_}; }
  [[nodiscard]] std::chrono::steady_clock::time_point real(Instant instant) const { return started_ + instant.time_since_epoch(); }

 private:
  std::chrono::steady_clock::time_point started_;
};

}  // namespace motley::runtime
