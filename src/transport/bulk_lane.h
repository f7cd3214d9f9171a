// The interface of a bulk lane, which sends and receives slices: it asks its owner for the next bulk message when it can send one, and for
// a buffer when a payload is announced. The kind of lane is negotiated when a connection opens (bulk_negotiation.h).
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/result.h"
#include "transport/transport.h"

namespace motley::transport {

/// How a payload came: over the lane, which uses the window, or copied from borrowed memory, which does not.
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

    /// The message to send now. None: the lane sleeps until wake().
    virtual std::optional<BulkMessage> next_bulk_message() = 0;
    /// The peer reads the payload in place, so it does not use the window. written() follows later.
    virtual void borrowed(const BulkMessage& bulk_message) = 0;
    /// The memory of the payload is free.
    virtual void written(const BulkMessage& bulk_message) = 0;

    /// The buffer for the announced payload, of exactly that size; none: stop reading.
    virtual std::optional<std::span<std::byte>> place(const wire::Message& head, std::size_t payload_bytes, Delivery how) = 0;
    virtual void placed(const wire::Message& head, std::size_t payload_bytes, Delivery how) = 0;

    /// The payload is in the peer's memory. True: it is used there until `borrow` is dropped. False: place() and placed() must follow,
    /// unless the lane was detached.
    virtual bool accept_in_place(const wire::Message& head, std::span<const std::byte> payload, const BorrowedMemory& borrow) = 0;

    /// The received payload differs from the sent one and must not be used. The lane calls nothing more.
    virtual void damaged(const Error& why) = 0;
    /// The lane ended, failed or carried invalid bytes. It calls nothing more.
    virtual void bulk_lost(const Error& why) = 0;
  };

  BulkLane() = default;
  BulkLane(const BulkLane&) = delete;
  BulkLane& operator=(const BulkLane&) = delete;
  virtual ~BulkLane() = default;

  /// Sets the owner; called once, before anything else.
  virtual void serve(Owner& owner) = 0;
  /// Called once.
  virtual void start_reading() = 0;
  /// There may be a next bulk message. Errors of writing are not reported: the reading half learns the reason.
  virtual void wake() = 0;
  /// The owner is not called again, and its memory is neither read nor written. The peer does not notice yet.
  virtual void detach() = 0;
  /// Ends the stream, which the peer notices. After detach().
  virtual void close() = 0;

  [[nodiscard]] virtual bool supports_borrowing() const { return false; }
  /// Payloads that were taken from the owner and are not yet written.
  [[nodiscard]] virtual std::size_t writing_bytes() const = 0;
};

}  // namespace motley::transport
