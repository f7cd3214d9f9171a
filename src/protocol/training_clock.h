// Training time: from the first order on, continued over restarts.
#pragma once
#include <optional>

#include "base/time.h"

namespace motley::protocol {

class TrainingClock {
 public:
  void start(Instant now) { started_at_ = now; }
  void continue_from(Duration trained) { before_ = trained; }
  [[nodiscard]] bool started() const { return started_at_.has_value(); }
  [[nodiscard]] Duration trained(Instant now) const { return before_ + (started_at_ ? now - *started_at_ : Duration{0}); }

 private:
  std::optional<Instant> started_at_;
  Duration before_{};
};

}  // namespace motley::protocol
