// The slices that a peer reads in place in this process's shared arena, and the arena's segments that the peer has mapped for that.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "transport/descriptor_passing.h"
#include "transport/segment.h"
#include "transport/shared_frame.h"

namespace motley::transport {

class OutgoingBorrows {
 public:
  /// Appends the frames that let the peer read the payload in place. False: it must be copied, because it may not be borrowed or does not
  /// lie in the arena.
  bool offer(const BulkMessage& bulk_message, wire::Bytes& frames, std::vector<AttachedFile>& files);
  /// Appends a withdrawal of each segment that the arena has released since the last call.
  void withdraw_released(wire::Bytes& frames);
  /// The message that the peer has returned; none when it had not borrowed it.
  std::optional<BulkMessage> take_returned(std::uint32_t borrow);
  [[nodiscard]] bool has_offered(const SegmentId& segment) const;
  /// The peer is lost and may still be reading: the memory of its borrows is never written again (SharedArena::spoil).
  void abandon();

 private:
  struct BorrowedMessage {
    BulkMessage bulk_message;
    std::uint32_t segment{};
  };
  std::map<std::uint32_t, BorrowedMessage> borrowed_;  // by borrow number
  std::uint32_t next_borrow_ = 0;
  std::map<std::uint32_t, SegmentId> offered_;
  std::uint64_t released_ = 0;  // SharedArena::released() at the last look
};

}  // namespace motley::transport
