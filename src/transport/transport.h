// The room's contract: a Connection carries messages and slices to one peer, a ConnectionCallbacks is told what comes back and what went.
// It knows neither strategies nor models nor who is chief. tcp, unix sockets, loopback, shaped and faulty all keep this one law
// (transport_law_test.cpp). Two lanes a peer, as in ps-lite's and TensorPipe's split: small messages never queue behind slices.
//
// One thread: everything here is called, and calls, on the thread that runs the io_context. Other threads post to it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "wire/message.h"

namespace motley::transport {

/// One slice to send. Its payload is sent straight from the caller's memory, which stays valid and unchanged until sent(ticket) or
/// closed().
struct BulkMessage {
  wire::Message head;                  // what the payload is; see bulk_frame.h
  std::span<const std::byte> payload;  // at most Options::largest_payload_bytes
  std::uint32_t priority{};            // lower numbers leave first; first in, first out among equals
  std::uint64_t ticket{};              // the caller's own name for it, given back by sent()
  bool may_borrow =
      false;  // it may be read where it lies, see ConnectionCallbacks::accept_in_place(); sent() then comes as late as the peer likes
};

/// Memory of a peer that is read where it lies. The peer's again when the last copy of this is gone, on whatever thread that happens.
using BorrowedMemory = std::shared_ptr<const void>;

/// What was accepted by send() and is not yet with the operating system.
struct Queued {
  std::size_t control_bytes{};
  std::size_t bulk_bytes{};  // payloads only
};

class ConnectionCallbacks;

/// Destroying one ends it at once and without a word, at any time, even from within a call to its ConnectionCallbacks.
class Connection {
 public:
  Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  virtual ~Connection() = default;

  /// Once, before anything is heard: until then nothing is read. `callbacks` outlives the connection.
  virtual void start(ConnectionCallbacks& callbacks) = 0;

  /// The control lane: in order, whole, before any slice that waits. More waiting than Options::control_queue_bytes ends the connection.
  virtual void send(const wire::Message& message) = 0;

  /// The bulk lane. Which parcel goes is chosen only when the lane can take more, so a late urgent one overtakes all that wait; one that
  /// was overtaken Options::overtakes times goes next. More waiting than Options::bulk_messages ends the connection.
  virtual void send(const BulkMessage& bulk_message) = 0;

  /// While held, what arrives is not granted back to the peer, who may so send at most one more window. For a receiver that falls behind.
  virtual void hold() = 0;
  virtual void resume() = 0;

  /// Messages already sent still arrive, then the reason; slices do not. Nothing more is heard but closed(). Later sends go nowhere.
  virtual void close(const std::string& reason) = 0;
  /// The same without ceremony, as a dying process would: what is half sent stays half sent.
  virtual void abandon(const std::string& reason) = 0;

  /// What may be lent is read where it lies, both ways.
  [[nodiscard]] virtual bool supports_borrowing() const { return false; }
  /// "127.0.0.1:40123", "unix:/run/m.sock". For reports.
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

  /// Where the payload of `head` goes: exactly `bytes` bytes that stay valid until received() or closed(). Any other size refuses it, and
  /// with it the connection; an empty place always does, for no payload is empty. It may close the connection itself, with its reason.
  virtual std::span<std::byte> receive_buffer(Connection& from, const wire::Message& head, std::size_t bytes) = 0;
  /// The payload is where receive_buffer() said. Slices arrive one at a time, each receive_buffer() followed by its received() unless the
  /// connection ends.
  virtual void received(Connection& from, const wire::Message& head) = 0;

  /// The payload lies in the peer's memory, readable there for as long as the loan is kept, even when the connection has ended. True: it
  /// was taken so, in the place of receive_buffer() and received(). False: it goes the way of the others.
  virtual bool accept_in_place(Connection& /*from*/, const wire::Message& /*head*/, std::span<const std::byte> /*payload*/,
                               const BorrowedMemory& /*loan*/) {
    return false;
  }

  /// The payload of this ticket is read and its memory free; it may still be on its way. At most once a ticket.
  virtual void sent(Connection& to, std::uint64_t ticket) = 0;

  /// Exactly once, last, after start(). `why` is the reason given to close() or abandon() here, or what the peer or the world did.
  virtual void closed(Connection& connection, const Error& why) = 0;
};

}  // namespace motley::transport
