#include "transport/outgoing_borrows.h"

#include <algorithm>
#include <utility>

#include "transport/shared_arena.h"

namespace motley::transport {

bool OutgoingBorrows::offer(const BulkMessage& bulk_message, wire::Bytes& frames, std::vector<AttachedFile>& files) {
  if (!bulk_message.may_borrow) return false;
  const auto place = shared_arena().find(bulk_message.payload);
  if (!place) return false;
  if (!offered_.contains(place->segment)) {
    const auto key = shared_arena().key(place->segment);
    if (!key) return false;
    files.push_back({frames.size(), key->file});
    append_offered(place->segment, key->size, frames);
    offered_.emplace(place->segment, id_of(*key->file));
  }
  append_borrowed(place->segment, place->offset, next_borrow_, bulk_message, frames);
  borrowed_.emplace(next_borrow_++, BorrowedMessage{bulk_message, place->segment});
  return true;
}

void OutgoingBorrows::withdraw_released(wire::Bytes& frames) {
  const std::uint64_t released = shared_arena().released();
  if (std::exchange(released_, released) == released) return;
  std::erase_if(offered_, [&](const auto& offered) {
    if (shared_arena().key(offered.first)) return false;
    append_withdrawn(offered.first, frames);
    return true;
  });
}

std::optional<BulkMessage> OutgoingBorrows::take_returned(std::uint32_t borrow) {
  auto found = borrowed_.extract(borrow);
  if (found.empty()) return std::nullopt;
  return std::move(found.mapped().bulk_message);
}

bool OutgoingBorrows::has_offered(const SegmentId& segment) const {
  return std::any_of(offered_.begin(), offered_.end(), [&](const auto& offered) { return offered.second == segment; });
}

void OutgoingBorrows::abandon() {
  for (const auto& [borrow, borrowed] : borrowed_) shared_arena().spoil(borrowed.segment);
  borrowed_.clear();
}

}  // namespace motley::transport
