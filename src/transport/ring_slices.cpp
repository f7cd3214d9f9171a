#include "transport/ring_slices.h"

#include <algorithm>

#include "base/check.h"

namespace motley::transport {

void RingSender::begin(BulkMessage bulk_message) {
  check(!busy(), "a ring carries one bulk message at a time");
  current_ = std::move(bulk_message);
  written_bytes_ = 0;
}

std::size_t RingSender::write(std::size_t most_bytes) {
  const auto rest = current_->payload.subspan(written_bytes_);
  const std::size_t written = ring_.write(rest.first(std::min(rest.size(), most_bytes)));
  written_bytes_ += written;
  if (written == rest.size()) completed_.push_back(*std::exchange(current_, std::nullopt));
  return written;
}

std::size_t RingSender::pending_bytes() const {
  std::size_t bytes = current_ ? current_->payload.size() : 0;
  for (const BulkMessage& bulk_message : completed_) bytes += bulk_message.payload.size();
  return bytes;
}

void RingReceiver::begin(Announced announced, std::span<std::byte> place) {
  check(!busy(), "a ring carries one slice at a time");
  slice_ = Slice{std::move(announced), place};
  taken_bytes_ = 0;
}

bool RingReceiver::take(std::size_t bytes) {
  if (!slice_ || bytes > slice_->payload.size() - taken_bytes_ || bytes > ring_.size() - unacknowledged_bytes_) return false;
  ring_.take(slice_->payload.subspan(taken_bytes_, bytes));
  taken_bytes_ += bytes;
  unacknowledged_bytes_ += bytes;
  return true;
}

std::optional<RingReceiver::Slice> RingReceiver::take_complete() {
  if (!slice_ || taken_bytes_ < slice_->payload.size()) return std::nullopt;
  return std::exchange(slice_, std::nullopt);
}

}  // namespace motley::transport
