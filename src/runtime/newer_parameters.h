// Newer global values for local steps: the slices of the next pull that have arrived. On an emulated device each step begins at its time,
// so that it merges what such a device would have received by then.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/check.h"
#include "runtime/clock.h"
#include "runtime/computation.h"
#include "runtime/interruptible_wait.h"
#include "store/local_model.h"

namespace motley::runtime {

/// Computing thread only. `emulated`: how long the round takes an emulated device.
class NewerParameters final : public store::IncomingUpdates {
 public:
  NewerParameters(Computation& computation, std::optional<Duration> emulated, InterruptibleWait& wait, const Clock& clock)
      : computation_(computation), emulated_(emulated), wait_(wait), clock_(clock) {}

  std::span<const Piece> since(std::uint32_t done) override {
    if (emulated_) {
      const double fraction = static_cast<double>(done) / computation_.order.local_steps;
      const Instant due = computation_.began + from_seconds(fraction * seconds(*emulated_));
      wait_.until(clock_.real(due), [&] { return computation_.cancelled.load(); });
    }
    pieces_.clear();
    check(!pull_ || pull_ == computation_.newer(), "one pull at most is newer than a round");
    pull_ = computation_.newer();
    if (pull_) pull_->take(taken_, pieces_);
    return pieces_;
  }

 private:
  Computation& computation_;
  std::optional<Duration> emulated_;
  InterruptibleWait& wait_;
  const Clock& clock_;
  std::shared_ptr<IncomingParameters> pull_;  // owns the values of the pieces
  std::vector<bool> taken_;
  std::vector<Piece> pieces_;
};

}  // namespace motley::runtime
