// The window of payload bytes that one side lets the other have under way: two accounts, one at each end. Pure.
//
// The receiver opens with a grant of its whole window and grants back what it has received. A payload goes when it fits what is left of the
// window, or when nothing at all is under way: so one larger than the window still goes, alone, and both ends know the same rule.
#pragma once
#include <cstddef>
#include <cstdint>

namespace motley::transport {

/// The sender's account.
class SendCredits {
 public:
  /// The first grant sets the window. False when a later one returns more than is under way: a broken peer.
  [[nodiscard]] bool grant(std::uint64_t bytes);
  [[nodiscard]] bool covers(std::size_t payload_bytes) const;
  /// Must be covered.
  void spend(std::size_t payload_bytes);
  /// What was spent was not needed: the payload does not travel.
  void take_back(std::size_t payload_bytes);

 private:
  std::uint64_t window_ = 0;  // 0: nothing granted yet
  std::uint64_t under_way_ = 0;
};

/// The receiver's account.
class ReceiveCredits {
 public:
  explicit ReceiveCredits(std::size_t window_bytes) : window_(window_bytes) {}

  [[nodiscard]] std::uint64_t window() const { return window_; }
  /// A payload is announced. False when a sender that keeps the rule would not send it now.
  [[nodiscard]] bool announce(std::size_t payload_bytes);
  /// It has arrived and is owed to the sender.
  void arrived(std::size_t payload_bytes) { owed_ += payload_bytes; }
  /// Takes what is owed, to grant it; 0 while held.
  std::uint64_t collect();
  void hold(bool held) { held_ = held; }

 private:
  std::uint64_t window_;
  std::uint64_t taken_ = 0;  // announced and not granted back
  std::uint64_t owed_ = 0;   // of that, arrived
  bool held_ = false;
};

}  // namespace motley::transport
