// A connection to another process, which may be faulty or malicious. Each message is checked before its receiver sees it, and the memory
// that the transport reads and writes stays allocated for as long as the transport uses it.
#pragma once
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "transport/options.h"
#include "transport/shaped.h"
#include "wire/permissions.h"

namespace motley::runtime {

class PeerConnection;

/// Receives what the peer sends. Called on the event-loop thread. Each call may retire the connection (deferred_destruction.h), none may
/// destroy it.
class PeerOwner {
 public:
  PeerOwner() = default;
  PeerOwner(const PeerOwner&) = delete;
  PeerOwner& operator=(const PeerOwner&) = delete;
  virtual ~PeerOwner() = default;

  /// Why this message breaks the protocol; none: it is delivered. Asked before every other call.
  [[nodiscard]] virtual wire::Objection objection(const PeerConnection& from, wire::Lane lane, const wire::Message& message) const = 0;
  /// There is an objection: the peer is to be closed with this reason.
  virtual void expel(PeerConnection& peer, const std::string& why) = 0;

  virtual void on_message(PeerConnection& from, wire::Message message) = 0;
  /// As of transport::ConnectionCallbacks.
  virtual std::span<std::byte> receive_buffer(PeerConnection& from, const wire::Message& head, std::size_t bytes) = 0;
  virtual void received(PeerConnection& from, const wire::Message& head) = 0;
  virtual bool accept_in_place(PeerConnection& /*from*/, const wire::Message& /*head*/, std::span<const std::byte> /*payload*/,
                               const transport::BorrowedMemory& /*borrow*/) {
    return false;
  }
  /// The transport has read the payload with this ticket. One of send_payload() has been released already.
  virtual void sent(PeerConnection& /*to*/, std::uint64_t /*ticket*/) {}
  virtual void closed(PeerConnection& peer, const Error& why) = 0;
};

class PeerConnection final : private transport::ConnectionCallbacks {
 public:
  /// Tickets from here on are this class's; an owner that sends on transport() itself uses lower ones.
  static constexpr std::uint64_t first_ticket = std::uint64_t{1} << 63U;

  /// The link has no emulated limits until transport().reshape(). `owner` outlives this, or its last call of retire().
  PeerConnection(std::unique_ptr<transport::Connection> connection, boost::asio::io_context& event_loop, const transport::Options& options,
                 PeerOwner& owner);
  ~PeerConnection() override = default;
  PeerConnection(const PeerConnection&) = delete;
  PeerConnection& operator=(const PeerConnection&) = delete;

  /// Once. Nothing is received before.
  void start() { connection_->start(*this); }
  void send(const wire::Message& message) { connection_->send(message); }
  /// The message's ticket is ignored. `memory` owns the payload and is kept until the transport has read it.
  void send_payload(transport::BulkMessage message, std::shared_ptr<const void> memory);
  /// Whether payloads of send_payload() have not been read yet.
  [[nodiscard]] bool sending() const { return !unsent_.empty(); }

  /// For PeerOwner::receive_buffer(): receives into `bytes`, which `memory` owns.
  std::span<std::byte> receive_into(std::span<std::byte> bytes, std::shared_ptr<void> memory);
  /// The same for a payload that nobody needs any more.
  std::span<std::byte> discard(std::size_t bytes);
  struct Received {
    std::span<std::byte> bytes;
    std::shared_ptr<void> memory;  // null: it was discarded
  };
  /// For PeerOwner::received(): what was given to receive_into(), once.
  Received take_received() { return std::exchange(receiving_, {}); }

  /// From now on the owner is not called; memory is kept as before. For a connection that waits for its destruction.
  void retire() { owner_ = nullptr; }

  /// False: it was closed before. A connection delivers messages for a while after it was closed; they are ignored.
  bool close(const std::string& reason);
  [[nodiscard]] bool is_closing() const { return closing_; }
  [[nodiscard]] const std::string& address() const { return connection_->peer(); }
  [[nodiscard]] transport::Shaped& transport() { return *connection_; }
  [[nodiscard]] const transport::Shaped& transport() const { return *connection_; }

 private:
  bool passes(wire::Lane lane, const wire::Message& message);
  void on_message(transport::Connection& from, wire::Message message) override;
  std::span<std::byte> receive_buffer(transport::Connection& from, const wire::Message& head, std::size_t bytes) override;
  void received(transport::Connection& from, const wire::Message& head) override;
  bool accept_in_place(transport::Connection& from, const wire::Message& head, std::span<const std::byte> payload,
                       const transport::BorrowedMemory& borrow) override;
  void sent(transport::Connection& to, std::uint64_t ticket) override;
  void closed(transport::Connection& connection, const Error& why) override;

  PeerOwner* owner_;  // null: retired
  bool closing_ = false;
  std::uint64_t next_ticket_ = first_ticket;
  std::map<std::uint64_t, std::shared_ptr<const void>> unsent_;  // by ticket
  Received receiving_;                                           // the payload that is being received
  std::vector<std::byte> discarded_bytes_;
  std::unique_ptr<transport::Shaped> connection_;  // last: destroyed before the memory that it uses
};

}  // namespace motley::runtime
