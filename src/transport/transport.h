// The interface of the transport: a Connection sends messages and slices to one peer; its ConnectionCallbacks receives theirs. It knows
// neither strategies, models nor roles. TCP, unix sockets, loopback, Shaped and Faulty pass one test suite (transport_law_test.cpp). Two
// lanes per peer, as in ps-lite and TensorPipe, so that small messages never queue behind slices.
//
// One thread: all calls and callbacks are on the thread that runs the io_context. Other threads post to it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "wire/message.h"

namespace motley::transport {

/// One slice to send. The payload is sent from the caller's memory without a copy; it must stay valid and unchanged until sent(ticket) or
/// closed().
struct BulkMessage {
  wire::Message head;                  // describes the payload; see bulk_frame.h
  std::span<const std::byte> payload;  // at most Options::largest_payload_bytes
  std::uint32_t priority{};            // lower numbers are sent first; first in, first out among equals
  std::uint64_t ticket{};              // chosen by the caller, passed to sent()
  /// The peer may read it in place (ConnectionCallbacks::accept_in_place()); sent() then comes when the peer has returned it.
  bool may_borrow = false;
};

/// Keeps a peer's memory readable in place. The memory returns to the peer when the last copy is destroyed, on any thread.
using BorrowedMemory = std::shared_ptr<const void>;

/// The bytes that send() accepted and that are not yet passed to the operating system.
struct Queued {
  std::size_t control_bytes{};
  std::size_t bulk_bytes{};  // payloads only
};

class ConnectionCallbacks;

/// Destroying a connection ends it at once without a goodbye, at any time, even from within one of its callbacks.
class Connection {
 public:
  Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  virtual ~Connection() = default;

  /// Called once. Nothing is read before. `callbacks` outlives the connection.
  virtual void start(ConnectionCallbacks& callbacks) = 0;

  /// Queues a message on the control lane: in order, before any waiting slice. More than Options::control_queue_bytes waiting ends the
  /// connection.
  virtual void send(const wire::Message& message) = 0;

  /// Queues a slice on the bulk lane. The next slice is chosen only when the lane can send, so a late urgent one overtakes all that wait;
  /// one that was overtaken Options::overtakes times goes next. More than Options::bulk_messages waiting ends the connection.
  virtual void send(const BulkMessage& bulk_message) = 0;

  /// While held, no credit is granted, so the peer can send at most one more window. For a receiver that falls behind.
  virtual void hold() = 0;
  virtual void resume() = 0;

  /// Messages already queued are still sent, then the reason; slices are not. The only callback from then on is closed(). Later sends are
  /// ignored.
  virtual void close(const std::string& reason) = 0;
  /// Ends the connection at once, without sending the rest or the reason, as if the process had died.
  virtual void abandon(const std::string& reason) = 0;

  /// Whether payloads in shared memory are read in place, in both directions.
  [[nodiscard]] virtual bool supports_borrowing() const { return false; }
  /// For reports: "127.0.0.1:40123", "unix:/run/m.sock".
  [[nodiscard]] virtual const std::string& peer() const = 0;
  [[nodiscard]] virtual Queued queued() const = 0;
};

/// Implemented by the owner of connections. Never called from within a call to the connection.
class ConnectionCallbacks {
 public:
  ConnectionCallbacks() = default;
  ConnectionCallbacks(const ConnectionCallbacks&) = delete;
  ConnectionCallbacks& operator=(const ConnectionCallbacks&) = delete;
  virtual ~ConnectionCallbacks() = default;

  virtual void on_message(Connection& from, wire::Message message) = 0;

  /// Returns the buffer for the payload of `head`: exactly `bytes` bytes, valid until received() or closed(). Any other size refuses the
  /// slice and closes the connection; an empty buffer always does, since no payload is empty. The callback may also close the connection
  /// itself, with its own reason.
  virtual std::span<std::byte> receive_buffer(Connection& from, const wire::Message& head, std::size_t bytes) = 0;
  /// The payload is in the buffer that receive_buffer() returned. Slices arrive one at a time: each receive_buffer() is followed by its
  /// received() unless the connection ends.
  virtual void received(Connection& from, const wire::Message& head) = 0;

  /// Offers a payload in the peer's memory, readable there as long as `borrow` is kept, even after the connection has ended. True:
  /// accepted, in place of receive_buffer() and received(). False: the payload is copied as usual.
  virtual bool accept_in_place(Connection& /*from*/, const wire::Message& /*head*/, std::span<const std::byte> /*payload*/,
                               const BorrowedMemory& /*borrow*/) {
    return false;
  }

  /// The payload of this ticket has been read and its memory is free; the bytes may still be in flight. At most once per ticket.
  virtual void sent(Connection& to, std::uint64_t ticket) = 0;

  /// Called exactly once, as the last callback, after start(). `why` is the reason given to close() or abandon(), or the peer's or
  /// network's failure.
  virtual void closed(Connection& connection, const Error& why) = 0;
};

}  // namespace motley::transport
