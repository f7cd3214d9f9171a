// How slices travel, whatever carries them: a lane asks its owner for the next parcel when it can take more, and where the next payload
// goes when one comes. Which lane a connection has is agreed on when it opens (bulk_terms.h); its rules stay the connection's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/result.h"
#include "transport/transport.h"

namespace motley::transport {

/// What was lent and is copied all the same has taken no room on the way.
enum class Delivery : std::uint8_t { sent, borrowed };

/// A lane lives as long as its coroutines, which share it with its connection.
class BulkLane {
 public:
  class Owner {
   public:
    Owner() = default;
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;
    virtual ~Owner() = default;

    /// What to send now. None: sleep until wake().
    virtual std::optional<BulkMessage> next_bulk_message() = 0;
    /// It does not travel: the peer reads it where it lies, and it counts for no window. written() comes later all the same.
    virtual void borrowed(const BulkMessage& bulk_message) = 0;
    /// Its memory is free.
    virtual void written(const BulkMessage& bulk_message) = 0;

    /// Where the announced payload goes: exactly that many bytes; none: stop reading.
    virtual std::optional<std::span<std::byte>> place(const wire::Message& head, std::size_t payload_bytes, Delivery how) = 0;
    virtual void placed(const wire::Message& head, std::size_t payload_bytes, Delivery how) = 0;

    /// The payload lies in the peer's memory. True: it is used there, until the loan is dropped. False: place() and placed() are to follow,
    /// unless the lane was detached.
    virtual bool accept_in_place(const wire::Message& head, std::span<const std::byte> payload, const BorrowedMemory& borrow) = 0;

    /// What was placed is not what was sent, and is not to be used. Nothing more comes from the lane.
    virtual void damaged(const Error& why) = 0;
    /// The lane ended, failed or was garbled. Nothing more comes from it.
    virtual void bulk_lost(const Error& why) = 0;
  };

  BulkLane() = default;
  BulkLane(const BulkLane&) = delete;
  BulkLane& operator=(const BulkLane&) = delete;
  virtual ~BulkLane() = default;

  /// Once, first of all: whom to ask and tell.
  virtual void serve(Owner& owner) = 0;
  /// Once: from now on what comes is read.
  virtual void start_reading() = 0;
  /// There may be a next parcel. A lane that cannot be written falls silent: the reading half hears why.
  virtual void wake() = 0;
  /// Silences it for good: the owner is not called again, and no memory of its is read or written. The peer does not notice yet.
  virtual void detach() = 0;
  /// The peer hears the end. After detach().
  virtual void close() = 0;

  [[nodiscard]] virtual bool supports_borrowing() const { return false; }
  /// Payloads of parcels that were taken from the owner and are not yet written.
  [[nodiscard]] virtual std::size_t writing_bytes() const = 0;
};

}  // namespace motley::transport
