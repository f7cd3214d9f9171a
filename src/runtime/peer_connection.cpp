#include "runtime/peer_connection.h"

#include <utility>

namespace motley::runtime {

PeerConnection::PeerConnection(std::unique_ptr<transport::Connection> connection, boost::asio::io_context& event_loop,
                               const transport::Options& options, PeerOwner& owner)
    : owner_(&owner),
      connection_(std::make_unique<transport::Shaped>(std::move(connection), event_loop.get_executor(), transport::Shape{}, options)) {}

void PeerConnection::send_payload(transport::BulkMessage message, std::shared_ptr<const void> memory) {
  message.ticket = next_ticket_++;
  unsent_[message.ticket] = std::move(memory);
  connection_->send(message);
}

std::span<std::byte> PeerConnection::receive_into(std::span<std::byte> bytes, std::shared_ptr<void> memory) {
  receiving_ = {bytes, std::move(memory)};
  return bytes;
}

std::span<std::byte> PeerConnection::discard(std::size_t bytes) {
  receiving_ = {};
  discarded_bytes_.resize(bytes);
  return discarded_bytes_;
}

bool PeerConnection::close(const std::string& reason) {
  if (std::exchange(closing_, true)) return false;
  connection_->close(reason);
  return true;
}

bool PeerConnection::passes(wire::Lane lane, const wire::Message& message) {
  if (closing_ || owner_ == nullptr) return false;
  const wire::Objection why = owner_->objection(*this, lane, message);
  if (why) owner_->expel(*this, *why);
  return !why;
}

void PeerConnection::on_message(transport::Connection&, wire::Message message) {
  if (passes(wire::Lane::control, message)) owner_->on_message(*this, std::move(message));
}

std::span<std::byte> PeerConnection::receive_buffer(transport::Connection&, const wire::Message& head, std::size_t bytes) {
  return passes(wire::Lane::bulk, head) ? owner_->receive_buffer(*this, head, bytes) : std::span<std::byte>{};
}

void PeerConnection::received(transport::Connection&, const wire::Message& head) {
  if (owner_ != nullptr) owner_->received(*this, head);
}

/// An objection is no reason to expel here: receive_buffer() is called next and expels.
bool PeerConnection::accept_in_place(transport::Connection&, const wire::Message& head, std::span<const std::byte> payload,
                                     const transport::BorrowedMemory& borrow) {
  return !closing_ && owner_ != nullptr && !owner_->objection(*this, wire::Lane::bulk, head) &&
         owner_->accept_in_place(*this, head, payload, borrow);
}

void PeerConnection::sent(transport::Connection&, std::uint64_t ticket) {
  unsent_.erase(ticket);
  if (owner_ != nullptr) owner_->sent(*this, ticket);
}

void PeerConnection::closed(transport::Connection&, const Error& why) {
  if (owner_ != nullptr) owner_->closed(*this, why);
}

}  // namespace motley::runtime
