#include "transport/bulk_writer.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>

#include "transport/bulk_frame.h"
#include "transport/constants.h"

namespace motley::transport {
namespace {

/// Takes `bytes` off the front of `left`.
void advance(std::span<asio::const_buffer>& left, std::size_t bytes) {
  while (!left.empty() && bytes >= left.front().size()) {
    bytes -= left.front().size();
    left = left.subspan(1);
  }
  if (!left.empty()) left.front() += bytes;
}

}  // namespace

void BulkWriter::wake() {
  if (runs_) return;
  runs_ = true;
  // Posted: all messages that the owner sends in this turn can be chosen.
  asio::post(stream_->get_executor(),
             [self = shared_from_this()] { asio::co_spawn(self->stream_->get_executor(), self->write(self), rethrow); });
}

asio::awaitable<void> BulkWriter::write(std::shared_ptr<BulkWriter> self) {
  for (;;) {
    const bool writable = co_await self->until_writable();
    if (!writable) co_return;
    self->runs_ = self->pick_batch();
    if (!self->runs_) co_return;
    const bool written = co_await self->write_batch();
    if (!written) co_return;
    self->report_batch();
  }
}

asio::awaitable<bool> BulkWriter::until_writable() {
  if (owner_ == nullptr) co_return false;
  const auto [failed] = co_await stream_->async_wait(Stream::wait_write, as_values);
  co_return owner_ != nullptr && !failed;
}

bool BulkWriter::pick_batch() {
  batch_.clear();
  announcements_.clear();
  buffers_.clear();
  std::vector<std::size_t> ends;  // of each announcement
  for (std::size_t bytes = 0; bytes < joined_write_bytes && batch_.size() < joined_write_messages; bytes += batch_.back().payload.size()) {
    std::optional<BulkMessage> bulk_message = owner_->next_bulk_message();
    if (!bulk_message) break;
    append_announcement(*bulk_message, announcements_);
    ends.push_back(announcements_.size());
    batch_.push_back(std::move(*bulk_message));
  }
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    const std::size_t begin = i == 0 ? 0 : ends[i - 1];
    buffers_.emplace_back(announcements_.data() + begin, ends[i] - begin);
    buffers_.emplace_back(batch_[i].payload.data(), batch_[i].payload.size());
  }
  return !batch_.empty();
}

asio::awaitable<bool> BulkWriter::write_batch() {
  std::span<asio::const_buffer> left(buffers_);
  while (!left.empty()) {
    const auto [failed, bytes] = co_await stream_->async_write_some(left, as_values);
    if (owner_ == nullptr || failed) co_return false;
    advance(left, bytes);
  }
  co_return true;
}

void BulkWriter::report_batch() {
  const std::vector<BulkMessage> done = std::exchange(batch_, {});
  for (const BulkMessage& bulk_message : done)
    if (owner_ != nullptr) owner_->written(bulk_message);
}

std::size_t BulkWriter::writing_bytes() const {
  std::size_t bytes = 0;
  for (const BulkMessage& bulk_message : batch_) bytes += bulk_message.payload.size();
  return bytes;
}

}  // namespace motley::transport
