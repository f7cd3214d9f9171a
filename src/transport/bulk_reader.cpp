#include "transport/bulk_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <cstring>

namespace motley::transport {

BulkReader::BulkReader(std::shared_ptr<Stream> stream, Owner& owner, std::size_t largest_payload_bytes)
    : stream_(std::move(stream)), owner_(&owner), largest_payload_bytes_(largest_payload_bytes) {}

void BulkReader::start() { asio::co_spawn(stream_->get_executor(), read(shared_from_this()), rethrow); }

asio::awaitable<void> BulkReader::read(std::shared_ptr<BulkReader> self) {
  while (self->owner_ != nullptr) {
    const std::optional<Announced> slice = co_await self->next_announcement();
    if (!slice) co_return;
    const auto place = self->owner_->place(slice->head, slice->payload_bytes, Delivery::sent);
    if (!place) co_return;
    const bool filled = co_await self->fill(*place);
    if (!filled) co_return;
    if (const Outcome whole = check_payload(*slice, *place); !whole.ok())
      co_return std::exchange(self->owner_, nullptr)->damaged(whole.error());
    self->owner_->placed(slice->head, slice->payload_bytes, Delivery::sent);
  }
}

asio::awaitable<std::optional<Announced>> BulkReader::next_announcement() {
  for (;;) {
    auto parsed = parse_announcement(ahead(), largest_payload_bytes_);
    if (!parsed.ok()) {
      lose(parsed.error());
      co_return std::nullopt;
    }
    if (auto* whole = std::get_if<Announced>(&*parsed)) {
      ahead_begin_ += whole->bytes;
      co_return std::move(*whole);
    }
    std::span<std::byte> nowhere;
    const bool more = co_await read_some(nowhere);
    if (!more) co_return std::nullopt;
  }
}

/// Fills `place`, first from the read-ahead. False once the lane has ended.
asio::awaitable<bool> BulkReader::fill(std::span<std::byte> place) {
  const std::size_t here = std::min(place.size(), ahead().size());
  std::copy_n(ahead().begin(), here, place.begin());
  ahead_begin_ += here;
  place = place.subspan(here);
  while (!place.empty()) {
    const bool more = co_await read_some(place);
    if (!more) co_return false;
  }
  co_return owner_ != nullptr;
}

/// One read: first into `place`, which shrinks by the bytes read, the rest into the read-ahead.
asio::awaitable<bool> BulkReader::read_some(std::span<std::byte>& place) {
  const std::span<std::byte> beyond = free_space();
  const std::array<asio::mutable_buffer, 2> buffers{asio::buffer(place.data(), place.size()), asio::buffer(beyond.data(), beyond.size())};
  const auto [failed, bytes] = co_await stream_->async_read_some(buffers, as_values);
  if (owner_ == nullptr) co_return false;
  if (failed) {
    lose(peer_broken(fmt::format("the bulk lane ended: {}", failed.message())));
    co_return false;
  }
  const std::size_t here = std::min(bytes, place.size());
  place = place.subspan(here);
  ahead_end_ += bytes - here;
  co_return true;
}

/// Moves the content of the read-ahead, less than an announcement, to its front; returns the free part.
std::span<std::byte> BulkReader::free_space() {
  std::memmove(ahead_.data(), ahead_.data() + ahead_begin_, ahead_end_ - ahead_begin_);
  ahead_end_ -= ahead_begin_;
  ahead_begin_ = 0;
  return std::span(ahead_).subspan(ahead_end_);
}

void BulkReader::lose(const Error& why) { std::exchange(owner_, nullptr)->bulk_lost(why); }

}  // namespace motley::transport
