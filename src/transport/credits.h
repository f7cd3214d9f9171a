// Credit-based flow control: limits the payload bytes in flight to a receiver. One account at each end. Pure.
//
// The receiver first grants its whole window, later the bytes it has received. A payload may be sent when it fits into the rest of the
// window, or when nothing is in flight; so one larger than the window is sent alone. Both ends check the same rule.
#pragma once
#include <cstddef>
#include <cstdint>

namespace motley::transport {

/// The sender's account.
class SendCredits {
 public:
  /// The first grant sets the window. False when a later one exceeds the bytes in flight: a broken peer.
  [[nodiscard]] bool grant(std::uint64_t bytes);
  [[nodiscard]] bool covers(std::size_t payload_bytes) const;
  /// Must be covered.
  void spend(std::size_t payload_bytes);
  /// Returns spent credit: the payload is read in place and uses no window.
  void take_back(std::size_t payload_bytes);

 private:
  std::uint64_t window_ = 0;  // 0: nothing granted yet
  std::uint64_t in_flight_ = 0;
};

/// The receiver's account.
class ReceiveCredits {
 public:
  explicit ReceiveCredits(std::size_t window_bytes) : window_(window_bytes) {}

  [[nodiscard]] std::uint64_t window() const { return window_; }
  /// A payload is announced. False when a sender that keeps the rule would not send it now.
  [[nodiscard]] bool announce(std::size_t payload_bytes);
  /// The payload has arrived; its bytes can be granted again.
  void arrived(std::size_t payload_bytes) { owed_ += payload_bytes; }
  /// The bytes to grant now; 0 while held.
  std::uint64_t collect();
  void hold(bool held) { held_ = held; }

 private:
  std::uint64_t window_;
  std::uint64_t taken_ = 0;  // announced and not granted back
  std::uint64_t owed_ = 0;   // of that, arrived
  bool held_ = false;
};

}  // namespace motley::transport
