// Slices that go through a ring of shared memory, piece by piece: one class for each end. They move bytes and count them; the frames that
// report the counts to the other end are the lane's (shared_bulk.h).
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "transport/bulk_frame.h"
#include "transport/shared_ring.h"

namespace motley::transport {

/// Copies the payloads of bulk messages into the ring, one after the other.
class RingSender {
 public:
  explicit RingSender(std::span<std::byte> ring) : ring_(ring) {}

  [[nodiscard]] bool has_space() const { return ring_.free_bytes() > 0; }
  /// A message has begun and is not fully written.
  [[nodiscard]] bool busy() const { return current_.has_value(); }
  /// Must not be busy.
  void begin(BulkMessage bulk_message);
  /// Writes at most this many bytes of the current message, as far as the ring has space; returns the number.
  std::size_t write(std::size_t most_bytes);
  /// The peer has read this many bytes. False when fewer were written: a broken peer.
  [[nodiscard]] bool acknowledge(std::size_t bytes) { return ring_.taken(bytes); }

  [[nodiscard]] std::size_t completed() const { return completed_.size(); }
  std::vector<BulkMessage> take_completed() { return std::exchange(completed_, {}); }
  /// Forgets the message in progress: its memory is not read again.
  void cancel() { current_.reset(); }
  /// Payloads of the messages that are begun or completed and not yet taken.
  [[nodiscard]] std::size_t pending_bytes() const;

 private:
  RingWriter ring_;
  std::optional<BulkMessage> current_;
  std::size_t written_bytes_ = 0;  // of the current message
  std::vector<BulkMessage> completed_;
};

/// Copies payloads from the peer's ring into the owner's buffers.
class RingReceiver {
 public:
  struct Slice {
    Announced announced;
    std::span<std::byte> payload;
  };

  explicit RingReceiver(std::span<const std::byte> ring) : ring_(ring) {}

  [[nodiscard]] bool busy() const { return slice_.has_value(); }
  /// Must not be busy. `place` has the announced size.
  void begin(Announced announced, std::span<std::byte> place);
  /// Copies the next bytes out. False when the slice or the ring has fewer: a broken peer.
  [[nodiscard]] bool take(std::size_t bytes);
  /// The slice once it is complete; none before.
  std::optional<Slice> take_complete();
  /// Bytes taken and not yet acknowledged to the peer; they count as acknowledged from now on.
  std::size_t take_unacknowledged() { return std::exchange(unacknowledged_bytes_, 0); }
  /// Forgets the slice in progress: its place is not written again.
  void cancel() { slice_.reset(); }

 private:
  RingReader ring_;
  std::optional<Slice> slice_;
  std::size_t taken_bytes_ = 0;  // of the slice
  std::size_t unacknowledged_bytes_ = 0;
};

}  // namespace motley::transport
