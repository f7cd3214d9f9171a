// Decides when a process that died is restarted: with exponential backoff, and not again after several deaths without progress. The caller
// reports progress.
#pragma once
#include <cstdint>
#include <optional>

#include "base/time.h"

namespace motley::runtime {

class Respawn {
 public:
  static constexpr std::uint32_t max_deaths = 5;
  static constexpr Duration first_pause = from_seconds(0.5);  // doubles with each death

  /// How long to wait before the restart. None: it has died too often without progress.
  [[nodiscard]] std::optional<Duration> died() {
    if (++deaths_ >= max_deaths) return std::nullopt;
    return first_pause * (1 << (deaths_ - 1));
  }
  void progressed() { deaths_ = 0; }

 private:
  std::uint32_t deaths_ = 0;  // without progress
};

}  // namespace motley::runtime
