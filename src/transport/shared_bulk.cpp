#include "transport/shared_bulk.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

#include "transport/constants.h"

namespace motley::transport {

SharedBulk::SharedBulk(Stream stream, Rings rings, std::size_t largest_payload_bytes)
    : stream_(std::move(stream)),
      rings_(std::move(rings)),
      reader_(largest_payload_bytes),
      receiver_(rings_.theirs->bytes()),
      returned_borrows_(std::make_shared<ReturnedBorrows>()),
      sender_(rings_.ours->bytes()) {}

SharedBulk::~SharedBulk() { returned_borrows_->close(); }

// reading --------------------------------------------------------------------------------------------------------------------------

void SharedBulk::start_reading() {
  returned_borrows_->open(stream_.get_executor(), [lane = weak_from_this()] {
    if (const auto self = lane.lock()) self->wake();
  });
  asio::co_spawn(stream_.get_executor(), read(shared_from_this()), rethrow);
}

asio::awaitable<void> SharedBulk::read(std::shared_ptr<SharedBulk> self) {
  while (self->handle_frames()) {
    const bool more = co_await self->read_more();
    if (!more) co_return;
  }
}

asio::awaitable<bool> SharedBulk::read_more() {
  const auto failed = co_await reader_.read_some(stream_);
  if (owner_ != nullptr && failed) lose(peer_broken(fmt::format("the bulk lane ended: {}", failed.message())));
  co_return owner_ != nullptr;
}

/// Handles every whole frame that was read. False once the lane has ended.
bool SharedBulk::handle_frames() {
  while (owner_ != nullptr) {
    Result<std::optional<SharedFrame>> next = reader_.next();
    if (!next.ok()) {
      lose(next.error());
      break;
    }
    if (!*next) break;
    std::visit([this](auto&& frame) { on_frame(std::forward<decltype(frame)>(frame)); }, std::move(**next));
  }
  if (owner_ != nullptr && reader_.unclaimed_files() > 1) lose(peer_broken("the bulk lane carries a descriptor that no frame names"));
  return owner_ != nullptr;
}

void SharedBulk::on_frame(Announced slice) {
  if (receiver_.busy()) return lose(peer_broken("the bulk lane announces a slice in the middle of another"));
  const auto place = owner_->place(slice.head, slice.payload_bytes, Delivery::sent);
  if (!place) return detach();
  receiver_.begin(std::move(slice), *place);
  deliver_if_complete();
}

void SharedBulk::on_frame(const BytesWritten& written) {
  if (!receiver_.take(written.bytes))
    return lose(peer_broken(fmt::format("the bulk lane reports {} written bytes that no slice expects or no ring holds", written.bytes)));
  wake();
  deliver_if_complete();
}

void SharedBulk::on_frame(const BytesTaken& taken) {
  if (!sender_.acknowledge(taken.bytes))
    return lose(peer_broken(fmt::format("the bulk lane acknowledges {} bytes that were not written", taken.bytes)));
  wake();
}

void SharedBulk::on_frame(const SegmentOffered& offered) {
  const std::optional<Descriptor> file = reader_.take_file();
  if (!file) return lose(peer_broken("the peer offers memory without its descriptor"));
  const auto is_ours = [this](const SegmentId& id) { return id == rings_.our_id || outgoing_borrows_.has_offered(id); };
  if (const Outcome mapped = peer_segments_.map(offered, *file, is_ours); !mapped.ok()) lose(mapped.error());
}

void SharedBulk::on_frame(const Borrowed& borrowed) {
  if (receiver_.busy()) return lose(peer_broken("the bulk lane offers a slice in place in the middle of another"));
  const Result<PeerSegments::Slice> found = peer_segments_.find(borrowed);
  if (!found.ok()) return lose(found.error());
  const std::span<const std::byte> payload = found->payload;
  const BorrowedMemory borrow(payload.data(), [returns = returned_borrows_, segment = found->segment,
                                               number = borrowed.borrow](const void*) { returns->drop(number); });
  if (owner_->accept_in_place(borrowed.slice.head, payload, borrow) || owner_ == nullptr) return;
  const auto place = owner_->place(borrowed.slice.head, payload.size(), Delivery::borrowed);
  if (!place) return detach();
  std::copy(payload.begin(), payload.end(), place->begin());
  owner_->placed(borrowed.slice.head, payload.size(), Delivery::borrowed);
}

void SharedBulk::on_frame(const Returned& returned) {
  const std::optional<BulkMessage> bulk_message = outgoing_borrows_.take_returned(returned.borrow);
  if (!bulk_message) return lose(peer_broken(fmt::format("the bulk lane returns borrow {}, which was not given", returned.borrow)));
  owner_->written(*bulk_message);
}

void SharedBulk::deliver_if_complete() {
  const std::optional<RingReceiver::Slice> slice = receiver_.take_complete();
  if (!slice) return;
  if (const Outcome whole = check_payload(slice->announced, slice->payload); !whole.ok())
    return std::exchange(owner_, nullptr)->damaged(whole.error());
  owner_->placed(slice->announced.head, slice->announced.payload_bytes, Delivery::sent);
}

// writing --------------------------------------------------------------------------------------------------------------------------

void SharedBulk::wake() {
  if (writer_runs_) return;
  writer_runs_ = true;
  // Posted: all messages that the owner sends in this turn can be chosen, and all acknowledgements go as one frame.
  asio::post(stream_.get_executor(),
             [self = shared_from_this()] { asio::co_spawn(self->stream_.get_executor(), self->write(self), rethrow); });
}

asio::awaitable<void> SharedBulk::write(std::shared_ptr<SharedBulk> self) {
  for (;;) {
    self->writer_runs_ = self->owner_ != nullptr && self->gather_frames();
    if (!self->writer_runs_) co_return;
    const bool written = co_await self->write_frames();
    if (!written) co_return;
    self->report_completed();
  }
}

/// Writes the next piece to the ring and gathers the frames to send. False when there is nothing to send.
bool SharedBulk::gather_frames() {
  frames_.clear();
  frame_files_.clear();
  if (const std::size_t taken = receiver_.take_unacknowledged(); taken > 0) append_taken(taken, frames_);
  for (const std::uint32_t borrow : returned_borrows_->collect()) append_returned(borrow, frames_);
  outgoing_borrows_.withdraw_released(frames_);
  std::size_t piece = 0;
  while (piece < ring_piece_bytes && sender_.completed() < joined_ring_messages && (sender_.busy() || begin_next())) {
    const std::size_t written = sender_.write(ring_piece_bytes - piece);
    if (written > 0) append_written(written, frames_);
    piece += written;
    if (sender_.busy()) break;
  }
  return !frames_.empty();
}

/// Chooses a message only when the ring has space, so that an urgent one overtakes all that wait.
bool SharedBulk::begin_next() {
  while (sender_.has_space()) {
    std::optional<BulkMessage> bulk_message = owner_->next_bulk_message();
    if (!bulk_message) return false;
    if (outgoing_borrows_.offer(*bulk_message, frames_, frame_files_)) {
      owner_->borrowed(*bulk_message);
      continue;
    }
    append_slice(*bulk_message, frames_);
    sender_.begin(std::move(*bulk_message));
    return true;
  }
  return false;
}

asio::awaitable<bool> SharedBulk::write_frames() {
  const auto failed = co_await write_with_files(stream_, frames_, frame_files_);
  // The reading half reports a broken stream with the peer's last message, but not a descriptor that the kernel did not pass on.
  const bool broken = failed == asio::error::broken_pipe || failed == asio::error::connection_reset;
  if (failed && !broken && owner_ != nullptr) lose(world_failed(fmt::format("the bulk lane cannot be written: {}", failed.message())));
  co_return owner_ != nullptr && !failed;
}

void SharedBulk::report_completed() {
  for (const BulkMessage& bulk_message : sender_.take_completed())
    if (owner_ != nullptr) owner_->written(bulk_message);
}

// ending ---------------------------------------------------------------------------------------------------------------------------

/// The owner detaches the lane.
void SharedBulk::lose(const Error& why) { std::exchange(owner_, nullptr)->bulk_lost(why); }

/// The stream stays open: its end would reach the peer before the reason does.
void SharedBulk::detach() {
  owner_ = nullptr;
  receiver_.cancel();
  sender_.cancel();
  outgoing_borrows_.abandon();
  returned_borrows_->close();
  boost::system::error_code ignored;
  stream_.cancel(ignored);  // NOLINT(bugprone-unused-return-value): the same error
}

}  // namespace motley::transport
