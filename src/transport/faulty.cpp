#include "transport/faulty.h"

#include <fmt/format.h>

#include <boost/asio/post.hpp>

#include "wire/frame.h"

namespace motley::transport {
namespace {

bool reached(const std::optional<std::uint64_t>& at, std::uint64_t bytes) { return at && bytes > *at; }

}  // namespace

Faulty::Faulty(std::unique_ptr<Connection> inner, const boost::asio::any_io_executor& executor, const Faults& faults, Rng rng)
    : Wrapped(std::move(inner)), faults_(faults), rng_(rng), executor_(executor), line_(executor) {}

// sending --------------------------------------------------------------------------------------------------------------------------

void Faulty::send(const wire::Message& message) { pass(message, wire::encoded_bytes(message)); }
void Faulty::send(const BulkMessage& bulk_message) { pass(bulk_message, bulk_message.payload.size()); }

template <class Thing>
void Faulty::pass(const Thing& thing, std::size_t bytes) {
  bytes_sent_ += bytes;
  if (cut_ || reached(faults_.stall_sending_at, bytes_sent_)) return;
  line_.put(some_delay(), [this, thing] { inner().send(thing); });
  if (reached(faults_.cut_sending_at, bytes_sent_)) cut_soon("sent");
}

std::chrono::nanoseconds Faulty::some_delay() {
  const auto longest = faults_.longest_delay.count();
  return std::chrono::nanoseconds(longest > 0 ? static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(longest))) : 0);
}

// receiving: nothing once cut, even if the inner connection still delivers ----------------------------------------------------------

void Faulty::on_message(Connection& inner, wire::Message message) {
  bytes_received_ += wire::encoded_bytes(message);
  if (cut_) return;
  if (reached(faults_.cut_receiving_at, bytes_received_)) return cut_soon("received");
  Wrapped::on_message(inner, std::move(message));
}

std::span<std::byte> Faulty::receive_buffer(Connection& inner, const wire::Message& head, std::size_t bytes) {
  bytes_received_ += bytes;
  if (!cut_ && reached(faults_.cut_receiving_at, bytes_received_)) cut_soon("received");
  return Wrapped::receive_buffer(inner, head, bytes);
}

void Faulty::received(Connection& inner, const wire::Message& head) {
  if (!cut_) Wrapped::received(inner, head);
}

void Faulty::sent(Connection& inner, std::uint64_t ticket) {
  if (!cut_) Wrapped::sent(inner, ticket);
}

// ending ---------------------------------------------------------------------------------------------------------------------------

/// Posted, so that the message just handed over may be sent in part.
void Faulty::cut_soon(const char* where) {
  cut_ = true;
  boost::asio::post(executor_, [watch = anchor_.watch(), where] {
    if (auto* self = watch.get()) self->abandon(fmt::format("the connection to {} was cut, as planned, by a byte {}", self->peer(), where));
  });
}

void Faulty::close(const std::string& reason) {
  line_.flush();
  Wrapped::close(reason);
}

void Faulty::abandon(const std::string& reason) {
  line_.drop();
  Wrapped::abandon(reason);
}

}  // namespace motley::transport
