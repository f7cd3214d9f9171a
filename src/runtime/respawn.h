// When a process that died is started again: later each time, and no more once it has died too often without progress in between. What is
// progress is for the caller to say.
#pragma once
#include <cstdint>
#include <optional>

#include "base/time.h"

namespace motley::runtime {

class Respawn {
 public:
  static constexpr std::uint32_t most_deaths = 5;
  static constexpr Duration first_pause = from_seconds(0.5);  // doubles with each death

  /// How long to wait before its next life. None: it has died so often that another life would be no better.
  [[nodiscard]] std::optional<Duration> died() {
    if (++deaths_ >= most_deaths) return std::nullopt;
    return first_pause * (1 << (deaths_ - 1));
  }
  void progressed() { deaths_ = 0; }

 private:
  std::uint32_t deaths_ = 0;  // without progress
};

}  // namespace motley::runtime
