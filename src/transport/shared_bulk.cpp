#include "transport/shared_bulk.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>

#include "transport/lendable.h"
#include "transport/memory_watch.h"

namespace motley::transport {
namespace {

// Laid and told at once: large enough to make the telling cheap, small enough that the peer copies out while we copy the next in.
constexpr std::size_t piece_bytes = 512 << 10;
constexpr std::size_t joined_parcels = 64;
constexpr std::size_t most_mapped = 1024;  // segments of a peer: far more than an honest one has at a time

}  // namespace

SharedBulk::SharedBulk(Stream stream, Rings rings, std::size_t largest_payload_bytes)
    : stream_(std::move(stream)),
      rings_(std::move(rings)),
      out_(rings_.ours->bytes()),
      in_(rings_.theirs->bytes()),
      largest_payload_bytes_(largest_payload_bytes),
      returns_(std::make_shared<Returns>()) {}

SharedBulk::~SharedBulk() { returns_->close(); }

// reading --------------------------------------------------------------------------------------------------------------------------

void SharedBulk::start_reading() {
  returns_->open(stream_.get_executor(), [lane = weak_from_this()] {
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
  const auto [failed, bytes] = co_await stream_.async_read_some(asio::buffer(input_) + input_used_, as_values);
  if (owner_ == nullptr) co_return false;
  if (failed) {
    lose(peer_broken(fmt::format("the bulk lane ended: {}", failed.message())));
    co_return false;
  }
  input_used_ += bytes;
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
    auto& said = std::get<BulkSaid>(*parsed);
    used += said.bytes;
    std::visit([this](auto&& word) { hear(std::forward<decltype(word)>(word)); }, std::move(said.word));
  }
  std::copy(input_.begin() + static_cast<std::ptrdiff_t>(used), input_.begin() + static_cast<std::ptrdiff_t>(input_used_), input_.begin());
  input_used_ -= used;
  return owner_ != nullptr;
}

void SharedBulk::hear(Announced slice) {
  if (filling_) return lose(peer_broken("the bulk lane announces a slice in the middle of another"));
  const auto place = owner_->place(slice.head, slice.payload_bytes, Travels::sent);
  if (!place) return detach();
  filling_ = Filling{std::move(slice), *place, *place};
  finish_if_filled();
}

void SharedBulk::hear(const Laid& laid) {
  if (!filling_ || laid.bytes > filling_->rest.size() || laid.bytes > in_.size() - owed_bytes_)
    return lose(peer_broken(fmt::format("the bulk lane has {} bytes laid that no slice needs or no ring holds", laid.bytes)));
  in_.take(filling_->rest.first(laid.bytes));
  filling_->rest = filling_->rest.subspan(laid.bytes);
  owed_bytes_ += laid.bytes;
  wake();
  finish_if_filled();
}

void SharedBulk::hear(const Taken& taken) {
  if (!out_.taken(taken.bytes)) return lose(peer_broken(fmt::format("the bulk lane has {} bytes taken that were not laid", taken.bytes)));
  wake();
}

void SharedBulk::hear(const Shown& shown) {
  if (mapped_.size() >= most_mapped) return lose(peer_broken(fmt::format("the peer lends from more than {} segments", most_mapped)));
  auto found = find_segment(shown.key, shown.bytes);
  if (!found.ok()) return lose(found.error());
  mapped_[shown.segment] = watched(std::move(*found));
}

void SharedBulk::hear(const Lent& lent) {
  if (filling_) return lose(peer_broken("the bulk lane lends a slice in the middle of another"));
  const auto found = mapped_.find(lent.segment);
  const std::size_t bytes = lent.slice.payload_bytes;
  constexpr std::size_t alignment = alignof(float);
  if (found == mapped_.end() || lent.offset % alignment != 0 || lent.offset > found->second->bytes().size() ||
      bytes > found->second->bytes().size() - lent.offset)
    return lose(
        peer_broken(fmt::format("the bulk lane lends {} bytes at {} of segment {}, which is not there", bytes, lent.offset, lent.segment)));
  const std::span<const std::byte> payload = found->second->bytes().subspan(lent.offset, bytes);
  const Loan loan(payload.data(),
                  [returns = returns_, segment = found->second, number = lent.loan](const void*) { returns->drop(number); });
  if (owner_->keep(lent.slice.head, payload, loan) || owner_ == nullptr) return;
  const auto place = owner_->place(lent.slice.head, bytes, Travels::lent);
  if (!place) return detach();
  std::copy(payload.begin(), payload.end(), place->begin());
  owner_->placed(lent.slice.head, bytes, Travels::lent);
}

void SharedBulk::hear(const Returned& returned) {
  const auto lent = on_loan_.extract(returned.loan);
  if (lent.empty()) return lose(peer_broken(fmt::format("the bulk lane returns loan {}, which was not given", returned.loan)));
  owner_->written(lent.mapped().parcel);
}

void SharedBulk::finish_if_filled() {
  if (!filling_->rest.empty()) return;
  const Announced slice = std::move(filling_->slice);
  const std::span<const std::byte> payload = filling_->place;
  filling_.reset();
  if (const Outcome whole = check_payload(slice, payload); !whole.ok()) return std::exchange(owner_, nullptr)->damaged(whole.error());
  owner_->placed(slice.head, slice.payload_bytes, Travels::sent);
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
  if (owed_bytes_ > 0) append_taken(std::exchange(owed_bytes_, 0), words_);
  for (const std::uint32_t loan : returns_->collect()) append_returned(loan, words_);
  withdraw_what_is_gone();
  std::size_t piece = 0;
  while (piece < piece_bytes && done_.size() < joined_parcels && (laying_ || begin_next())) {
    const auto rest = laying_->parcel.payload.subspan(laying_->laid_bytes);
    const std::size_t laid = out_.lay(rest.first(std::min(rest.size(), piece_bytes - piece)));
    if (laid > 0) append_laid(laid, words_);
    piece += laid;
    laying_->laid_bytes += laid;
    if (laid < rest.size()) break;
    done_.push_back(std::exchange(laying_, std::nullopt)->parcel);
  }
  return !words_.empty();
}

/// Chosen only when there is room: so a late urgent parcel overtakes all that wait.
bool SharedBulk::begin_next() {
  while (out_.room() > 0) {
    std::optional<Parcel> parcel = owner_->next_parcel();
    if (!parcel) return false;
    if (lend(*parcel)) {
      owner_->lent(*parcel);
      continue;
    }
    append_slice(*parcel, words_);
    laying_ = Laying{std::move(*parcel)};
    return true;
  }
  return false;
}

/// False when it must be laid: it is not to be lent, or lies where nothing can be.
bool SharedBulk::lend(const Parcel& parcel) {
  if (!parcel.lend) return false;
  const auto place = lendable().find(parcel.payload);
  if (!place) return false;
  if (!shown_.contains(place->segment)) {
    const auto key = lendable().key(place->segment);
    if (!key) return false;
    append_shown(place->segment, key->size, key->bytes, words_);
    shown_.insert(place->segment);
  }
  append_lent(place->segment, place->offset, next_loan_, parcel, words_);
  on_loan_.emplace(next_loan_++, OnLoan{parcel, place->segment});
  return true;
}

void SharedBulk::withdraw_what_is_gone() {
  const std::uint64_t gone = lendable().gone();
  if (std::exchange(gone_, gone) == gone) return;
  std::erase_if(shown_, [this](std::uint32_t segment) {
    if (lendable().key(segment)) return false;
    append_withdrawn(segment, words_);
    return true;
  });
}

asio::awaitable<bool> SharedBulk::write_words() {
  const auto [failed, bytes] = co_await asio::async_write(stream_, asio::buffer(words_), as_values);
  co_return owner_ != nullptr && !failed;
}

void SharedBulk::report_done() {
  const std::vector<Parcel> done = std::exchange(done_, {});
  for (const Parcel& parcel : done)
    if (owner_ != nullptr) owner_->written(parcel);
}

std::size_t SharedBulk::writing_bytes() const {
  std::size_t bytes = laying_ ? laying_->parcel.payload.size() : 0;
  for (const Parcel& parcel : done_) bytes += parcel.payload.size();
  return bytes;
}

// ending ---------------------------------------------------------------------------------------------------------------------------

/// The owner detaches it.
void SharedBulk::lose(const Error& why) { std::exchange(owner_, nullptr)->bulk_lost(why); }

/// The stream stays open: its end would reach the peer before the reason does.
void SharedBulk::detach() {
  owner_ = nullptr;
  filling_.reset();
  laying_.reset();
  for (const auto& [loan, lent] : on_loan_) lendable().spoil(lent.segment);
  on_loan_.clear();
  returns_->close();
  boost::system::error_code ignored;
  stream_.cancel(ignored);  // NOLINT(bugprone-unused-return-value): the same error
}

}  // namespace motley::transport
