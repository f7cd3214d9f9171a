#include "transport/shared_bulk.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

#include "transport/memory_watch.h"
#include "transport/shared_arena.h"

namespace motley::transport {
namespace {

// Laid and told at once: large enough to make the telling cheap, small enough that the peer copies out while we copy the next in.
constexpr std::size_t piece_bytes = 512 << 10;
constexpr std::size_t joined_bulk_messages = 64;
constexpr std::size_t most_mapped = 1024;  // segments of a peer: far more than an honest one has at a time

}  // namespace

SharedBulk::SharedBulk(Stream stream, Rings rings, std::size_t largest_payload_bytes)
    : stream_(std::move(stream)),
      rings_(std::move(rings)),
      out_(rings_.ours->bytes()),
      in_(rings_.theirs->bytes()),
      largest_payload_bytes_(largest_payload_bytes),
      returned_borrows_(std::make_shared<ReturnedBorrows>()) {}

SharedBulk::~SharedBulk() { returned_borrows_->close(); }

// reading --------------------------------------------------------------------------------------------------------------------------

void SharedBulk::start_reading() {
  returned_borrows_->open(stream_.get_executor(), [lane = weak_from_this()] {
    if (const auto here = lane.lock()) here->wake();
  });
  asio::co_spawn(stream_.get_executor(), read(shared_from_this()), rethrow);
}

asio::awaitable<void> SharedBulk::read(std::shared_ptr<SharedBulk> self) {
  while (self->hear_all_read()) {
    const bool more = co_await self->read_more();
    if (!more) co_return;
  }
}

asio::awaitable<bool> SharedBulk::read_more() {
  ReadWithFile read = co_await read_some_with_file(stream_, std::span(input_).subspan(input_used_));
  if (owner_ == nullptr) co_return false;
  if (read.failed) {
    lose(peer_broken(fmt::format("the bulk lane ended: {}", read.failed.message())));
    co_return false;
  }
  input_used_ += read.bytes;
  if (read.file.number() >= 0) files_.push_back(std::move(read.file));
  co_return true;
}

/// Hears every whole word of the input. False once the lane is over.
bool SharedBulk::hear_all_read() {
  std::size_t used = 0;
  while (owner_ != nullptr) {
    auto parsed = parse_word(std::span(input_).first(input_used_).subspan(used), largest_payload_bytes_);
    if (!parsed.ok()) {
      lose(parsed.error());
      break;
    }
    if (std::holds_alternative<wire::Incomplete>(*parsed)) break;
    auto& reported = std::get<ParsedBulkWord>(*parsed);
    used += reported.bytes;
    std::visit([this](auto&& word) { hear(std::forward<decltype(word)>(word)); }, std::move(reported.word));
  }
  std::copy(input_.begin() + static_cast<std::ptrdiff_t>(used), input_.begin() + static_cast<std::ptrdiff_t>(input_used_), input_.begin());
  input_used_ -= used;
  if (owner_ != nullptr && files_.size() > 1) lose(peer_broken("the bulk lane carries a descriptor that no word names"));
  return owner_ != nullptr;
}

void SharedBulk::hear(Announced slice) {
  if (filling_) return lose(peer_broken("the bulk lane announces a slice in the middle of another"));
  const auto place = owner_->place(slice.head, slice.payload_bytes, Delivery::sent);
  if (!place) return detach();
  filling_ = Filling{std::move(slice), *place, *place};
  finish_if_filled();
}

void SharedBulk::hear(const BytesWritten& written) {
  if (!filling_ || written.bytes > filling_->rest.size() || written.bytes > in_.size() - owed_bytes_)
    return lose(peer_broken(fmt::format("the bulk lane has {} bytes laid that no slice needs or no ring holds", written.bytes)));
  in_.take(filling_->rest.first(written.bytes));
  filling_->rest = filling_->rest.subspan(written.bytes);
  owed_bytes_ += written.bytes;
  wake();
  finish_if_filled();
}

void SharedBulk::hear(const Taken& taken) {
  if (!out_.taken(taken.bytes)) return lose(peer_broken(fmt::format("the bulk lane has {} bytes taken that were not laid", taken.bytes)));
  wake();
}

void SharedBulk::hear(const SegmentOffered& offered) {
  Result<std::unique_ptr<Segment>> taken = take_offered(offered);
  if (!taken.ok()) return lose(taken.error());
  mapped_[offered.segment] = watched(std::move(*taken));
}

Result<std::unique_ptr<Segment>> SharedBulk::take_offered(const SegmentOffered& offered) {
  if (files_.empty()) return peer_broken("the peer shows memory and does not send it");
  const Descriptor file = std::move(files_.front());
  files_.pop_front();
  if (mapped_.contains(offered.segment)) return peer_broken(fmt::format("the peer shows its segment {} twice", offered.segment));
  if (mapped_.size() >= most_mapped) return peer_broken(fmt::format("the peer lends from more than {} segments", most_mapped));
  std::size_t mapped_bytes = 0;
  for (const auto& [number, segment] : mapped_) mapped_bytes += segment->bytes().size();
  if (offered.bytes > memory_of_this_machine() - std::min(mapped_bytes, memory_of_this_machine()))
    return peer_broken(fmt::format("the peer lends {} bytes beside {}, more than this machine has", offered.bytes, mapped_bytes));
  Result<std::unique_ptr<Segment>> found = map_segment(file, offered.bytes);
  if (!found.ok()) return found;
  const SegmentId id = id_of(file);
  const bool is_ours =
      id == rings_.our_id || std::any_of(offered_.begin(), offered_.end(), [&](const auto& ours) { return ours.second == id; });
  if (is_ours) return peer_broken("the peer lends our own memory");
  return found;
}

void SharedBulk::hear(const Borrowed& borrowed) {
  if (filling_) return lose(peer_broken("the bulk lane lends a slice in the middle of another"));
  const auto found = mapped_.find(borrowed.segment);
  const std::size_t bytes = borrowed.slice.payload_bytes;
  constexpr std::size_t alignment = alignof(float);
  if (found == mapped_.end() || borrowed.offset % alignment != 0 || borrowed.offset > found->second->bytes().size() ||
      bytes > found->second->bytes().size() - borrowed.offset)
    return lose(peer_broken(
        fmt::format("the bulk lane lends {} bytes at {} of segment {}, which is not there", bytes, borrowed.offset, borrowed.segment)));
  const std::span<const std::byte> payload = found->second->bytes().subspan(borrowed.offset, bytes);
  const BorrowedMemory borrow(payload.data(), [returns = returned_borrows_, segment = found->second,
                                               number = borrowed.borrow](const void*) { returns->drop(number); });
  if (owner_->accept_in_place(borrowed.slice.head, payload, borrow) || owner_ == nullptr) return;
  const auto place = owner_->place(borrowed.slice.head, bytes, Delivery::borrowed);
  if (!place) return detach();
  std::copy(payload.begin(), payload.end(), place->begin());
  owner_->placed(borrowed.slice.head, bytes, Delivery::borrowed);
}

void SharedBulk::hear(const Returned& returned) {
  const auto borrowed = borrowed_.extract(returned.borrow);
  if (borrowed.empty()) return lose(peer_broken(fmt::format("the bulk lane returns loan {}, which was not given", returned.borrow)));
  owner_->written(borrowed.mapped().bulk_message);
}

void SharedBulk::finish_if_filled() {
  if (!filling_->rest.empty()) return;
  const Announced slice = std::move(filling_->slice);
  const std::span<const std::byte> payload = filling_->place;
  filling_.reset();
  if (const Outcome whole = check_payload(slice, payload); !whole.ok()) return std::exchange(owner_, nullptr)->damaged(whole.error());
  owner_->placed(slice.head, slice.payload_bytes, Delivery::sent);
}

// writing --------------------------------------------------------------------------------------------------------------------------

void SharedBulk::wake() {
  if (runs_) return;
  runs_ = true;
  // Posted: all that the owner sends in this turn is there to choose from, and what was taken is told as one.
  asio::post(stream_.get_executor(),
             [self = shared_from_this()] { asio::co_spawn(self->stream_.get_executor(), self->write(self), rethrow); });
}

asio::awaitable<void> SharedBulk::write(std::shared_ptr<SharedBulk> self) {
  for (;;) {
    self->runs_ = self->owner_ != nullptr && self->gather_words();
    if (!self->runs_) co_return;
    const bool written = co_await self->write_words();
    if (!written) co_return;
    self->report_done();
  }
}

/// Lays the next piece and gathers what is to be said. False when there is nothing to say.
bool SharedBulk::gather_words() {
  words_.clear();
  words_files_.clear();
  if (owed_bytes_ > 0) append_taken(std::exchange(owed_bytes_, 0), words_);
  for (const std::uint32_t borrow : returned_borrows_->collect()) append_returned(borrow, words_);
  withdraw_what_is_gone();
  std::size_t piece = 0;
  while (piece < piece_bytes && done_.size() < joined_bulk_messages && (writing_ || begin_next())) {
    const auto rest = writing_->bulk_message.payload.subspan(writing_->written_bytes);
    const std::size_t written = out_.write(rest.first(std::min(rest.size(), piece_bytes - piece)));
    if (written > 0) append_written(written, words_);
    piece += written;
    writing_->written_bytes += written;
    if (written < rest.size()) break;
    done_.push_back(std::exchange(writing_, std::nullopt)->bulk_message);
  }
  return !words_.empty();
}

/// Chosen only when there is room: so a late urgent parcel overtakes all that wait.
bool SharedBulk::begin_next() {
  while (out_.free_bytes() > 0) {
    std::optional<BulkMessage> bulk_message = owner_->next_bulk_message();
    if (!bulk_message) return false;
    if (offer_borrow(*bulk_message)) {
      owner_->borrowed(*bulk_message);
      continue;
    }
    append_slice(*bulk_message, words_);
    writing_ = Writing{std::move(*bulk_message)};
    return true;
  }
  return false;
}

/// False when it must be laid: it is not to be lent, or lies where nothing can be.
bool SharedBulk::offer_borrow(const BulkMessage& bulk_message) {
  if (!bulk_message.may_borrow) return false;
  const auto place = shared_arena().find(bulk_message.payload);
  if (!place) return false;
  if (!offered_.contains(place->segment)) {
    const auto key = shared_arena().key(place->segment);
    if (!key) return false;
    words_files_.push_back({words_.size(), key->file});
    append_offered(place->segment, key->size, words_);
    offered_.emplace(place->segment, id_of(*key->file));
  }
  append_borrowed(place->segment, place->offset, next_borrow_, bulk_message, words_);
  borrowed_.emplace(next_borrow_++, BorrowedMessage{bulk_message, place->segment});
  return true;
}

void SharedBulk::withdraw_what_is_gone() {
  const std::uint64_t gone = shared_arena().gone();
  if (std::exchange(gone_, gone) == gone) return;
  std::erase_if(offered_, [this](const auto& offered) {
    if (shared_arena().key(offered.first)) return false;
    append_withdrawn(offered.first, words_);
    return true;
  });
}

asio::awaitable<bool> SharedBulk::write_words() {
  const auto failed = co_await write_with_files(stream_, words_, words_files_);
  // The reading half hears of a broken stream, with the peer's last words, but not of a descriptor that the kernel did not pass on.
  const bool broken = failed == asio::error::broken_pipe || failed == asio::error::connection_reset;
  if (failed && !broken && owner_ != nullptr) lose(world_failed(fmt::format("the bulk lane cannot be written: {}", failed.message())));
  co_return owner_ != nullptr && !failed;
}

void SharedBulk::report_done() {
  const std::vector<BulkMessage> done = std::exchange(done_, {});
  for (const BulkMessage& bulk_message : done)
    if (owner_ != nullptr) owner_->written(bulk_message);
}

std::size_t SharedBulk::writing_bytes() const {
  std::size_t bytes = writing_ ? writing_->bulk_message.payload.size() : 0;
  for (const BulkMessage& bulk_message : done_) bytes += bulk_message.payload.size();
  return bytes;
}

// ending ---------------------------------------------------------------------------------------------------------------------------

/// The owner detaches it.
void SharedBulk::lose(const Error& why) { std::exchange(owner_, nullptr)->bulk_lost(why); }

/// The stream stays open: its end would reach the peer before the reason does.
void SharedBulk::detach() {
  owner_ = nullptr;
  filling_.reset();
  writing_.reset();
  for (const auto& [borrow, borrowed] : borrowed_) shared_arena().spoil(borrowed.segment);
  borrowed_.clear();
  returned_borrows_->close();
  boost::system::error_code ignored;
  stream_.cancel(ignored);  // NOLINT(bugprone-unused-return-value): the same error
}

}  // namespace motley::transport
