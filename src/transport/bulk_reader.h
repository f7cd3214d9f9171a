// The receiving half of a bulk lane on a stream: payloads are read directly into the owner's memory.
// One system call reads the rest of a payload and the announcements after it, so a large slice is not copied and a small one needs no
// call of its own. Lives as long as its coroutine; after detach() the owner is not called again.
#pragma once
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "transport/bulk_frame.h"
#include "transport/bulk_lane.h"
#include "transport/constants.h"
#include "transport/stream.h"

namespace motley::transport {

class BulkReader : public std::enable_shared_from_this<BulkReader> {
 public:
  using Owner = BulkLane::Owner;

  BulkReader(std::shared_ptr<Stream> stream, Owner& owner, std::size_t largest_payload_bytes);

  void start();
  void detach() { owner_ = nullptr; }

 private:
  asio::awaitable<void> read(std::shared_ptr<BulkReader> self);
  asio::awaitable<std::optional<Announced>> next_announcement();
  asio::awaitable<bool> fill(std::span<std::byte> place);
  asio::awaitable<bool> read_some(std::span<std::byte>& place);
  [[nodiscard]] std::span<const std::byte> ahead() const { return std::span(ahead_).subspan(ahead_begin_, ahead_end_ - ahead_begin_); }
  std::span<std::byte> free_space();
  void lose(const Error& why);

  static_assert(read_ahead_bytes >= longest_announcement);

  std::shared_ptr<Stream> stream_;
  Owner* owner_;  // null once detached
  std::size_t largest_payload_bytes_;
  std::array<std::byte, read_ahead_bytes> ahead_{};  // read and not yet used: [begin, end)
  std::size_t ahead_begin_ = 0;
  std::size_t ahead_end_ = 0;
};

}  // namespace motley::transport
