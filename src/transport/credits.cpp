#include "transport/credits.h"

#include <utility>

#include "base/check.h"

namespace motley::transport {
namespace {

/// The rule of both ends.
bool fits(std::uint64_t window, std::uint64_t under_way, std::size_t bytes) {
  return under_way == 0 || (under_way <= window && bytes <= window - under_way);
}

}  // namespace

bool SendCredits::grant(std::uint64_t bytes) {
  if (window_ == 0) {
    window_ = bytes;
    return bytes > 0;
  }
  if (bytes > under_way_) return false;
  under_way_ -= bytes;
  return true;
}

bool SendCredits::covers(std::size_t payload_bytes) const { return window_ > 0 && fits(window_, under_way_, payload_bytes); }

void SendCredits::spend(std::size_t payload_bytes) {
  check(covers(payload_bytes), "a payload is sent only within the window that the peer granted");
  under_way_ += payload_bytes;
}

void SendCredits::take_back(std::size_t payload_bytes) {
  check(payload_bytes <= under_way_, "only what was spent is taken back");
  under_way_ -= payload_bytes;
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
