#include "transport/credits.h"

#include <utility>

#include "base/check.h"

namespace motley::transport {
namespace {

/// The rule of both ends.
bool fits(std::uint64_t window, std::uint64_t in_flight, std::size_t bytes) {
  return in_flight == 0 || (in_flight <= window && bytes <= window - in_flight);
}

}  // namespace

bool SendCredits::grant(std::uint64_t bytes) {
  if (window_ == 0) {
    window_ = bytes;
    return bytes > 0;
  }
  if (bytes > in_flight_) return false;
  in_flight_ -= bytes;
  return true;
}

bool SendCredits::covers(std::size_t payload_bytes) const { return window_ > 0 && fits(window_, in_flight_, payload_bytes); }

void SendCredits::spend(std::size_t payload_bytes) {
  check(covers(payload_bytes), "a payload is sent only within the window that the peer granted");
  in_flight_ += payload_bytes;
}

void SendCredits::take_back(std::size_t payload_bytes) {
  check(payload_bytes <= in_flight_, "only what was spent is taken back");
  in_flight_ -= payload_bytes;
}

bool ReceiveCredits::announce(std::size_t payload_bytes) {
  if (!fits(window_, taken_, payload_bytes)) return false;
  taken_ += payload_bytes;
  return true;
}

std::uint64_t ReceiveCredits::collect() {
  if (held_) return 0;
  taken_ -= owed_;
  return std::exchange(owed_, 0);
}

}  // namespace motley::transport
