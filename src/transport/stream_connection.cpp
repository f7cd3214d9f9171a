#include "transport/stream_connection.h"

#include <fmt/format.h>

#include <boost/asio/post.hpp>

#include "base/check.h"
#include "base/match.h"
#include "transport/refusal.h"

namespace motley::transport {

StreamConnection::StreamConnection(Stream control, std::shared_ptr<BulkLane> bulk, const Options& options)
    : peer_(peer_of(control)),
      options_(options),
      executor_(control.get_executor()),
      control_(std::make_shared<ControlLane>(std::move(control), static_cast<ControlLane::Owner&>(*this))),
      bulk_(std::move(bulk)),
      linger_(executor_),
      outbox_(options.overtakes),
      receiving_(options.window_bytes) {
  bulk_->serve(*this);
}

StreamConnection::~StreamConnection() {
  stop_bulk();
  bulk_->close();
  control_->detach();
}

void StreamConnection::start(ConnectionCallbacks& callbacks) {
  check(callbacks_ == nullptr, "a connection is started once");
  callbacks_ = &callbacks;
  if (state_ == State::ended) return tell_closed();
  control_->grant(receiving_.window());
  control_->start_reading();
  if (state_ == State::open) bulk_->start_reading();
}

// sending --------------------------------------------------------------------------------------------------------------------------

void StreamConnection::send(const wire::Message& message) {
  if (state_ != State::open) return;
  control_->send(message);
  if (control_->queued_bytes() > options_.control_queue_bytes)
    end(peer_broken(
        fmt::format("control queue full: {} takes its messages too slowly, more than {} bytes wait", peer_, options_.control_queue_bytes)));
}

void StreamConnection::send(const BulkMessage& bulk_message) {
  check(bulk_message.payload.size() <= options_.largest_payload_bytes, "a payload is no larger than Options::largest_payload_bytes");
  if (state_ != State::open) return;
  outbox_.push(bulk_message);
  if (outbox_.size() > options_.bulk_messages)
    return end(
        peer_broken(fmt::format("bulk queue full: {} takes its slices too slowly, more than {} wait", peer_, options_.bulk_messages)));
  bulk_->wake();
}

std::optional<BulkMessage> StreamConnection::next_bulk_message() {
  if (outbox_.empty() || !sending_.covers(outbox_.next().payload.size())) return std::nullopt;
  BulkMessage bulk_message = outbox_.pop();
  sending_.spend(bulk_message.payload.size());
  return bulk_message;
}

void StreamConnection::written(const BulkMessage& bulk_message) {
  if (callbacks_ != nullptr) callbacks_->sent(*this, bulk_message.ticket);
}

Queued StreamConnection::queued() const { return {control_->queued_bytes(), outbox_.payload_bytes() + bulk_->writing_bytes()}; }

// receiving ------------------------------------------------------------------------------------------------------------------------

void StreamConnection::control_received(ControlFrame what) {
  std::visit([this](auto&& word) { on_frame(std::forward<decltype(word)>(word)); }, std::move(what));
}

void StreamConnection::on_frame(wire::Message message) {
  if (state_ == State::open) callbacks_->on_message(*this, std::move(message));
}

void StreamConnection::on_frame(const Credit& credit) {
  if (state_ != State::open) return;
  if (!sending_.grant(credit.bytes))
    return begin_closing(peer_broken(fmt::format("{} granted {} bytes that were not in flight", peer_, credit.bytes)));
  if (!outbox_.empty()) bulk_->wake();
}

void StreamConnection::on_frame(const Goodbye& goodbye) {
  end(peer_broken(fmt::format("{} closed the connection: {}", peer_, goodbye.reason)));
}

/// It used the window when it was chosen; a borrowed payload uses none.
void StreamConnection::borrowed(const BulkMessage& bulk_message) { sending_.take_back(bulk_message.payload.size()); }

std::optional<std::span<std::byte>> StreamConnection::place(const wire::Message& head, std::size_t payload_bytes, Delivery how) {
  if (how == Delivery::sent && !receiving_.announce(payload_bytes)) {
    begin_closing(beyond_the_window(payload_bytes));
    return std::nullopt;
  }
  const auto here = anchor_.watch();
  const std::span<std::byte> place = callbacks_->receive_buffer(*this, head, payload_bytes);
  if (here.gone() || state_ != State::open) return std::nullopt;
  if (place.size() == payload_bytes && !place.empty()) return place;
  begin_closing(peer_broken(refusal_of(head, payload_bytes, peer_, place.size())));
  return std::nullopt;
}

void StreamConnection::placed(const wire::Message& head, std::size_t payload_bytes, Delivery how) {
  if (how == Delivery::sent) receiving_.arrived(payload_bytes);
  const auto here = anchor_.watch();
  callbacks_->received(*this, head);
  if (!here.gone()) grant_what_is_owed();  // after received(), which may have called hold()
}

bool StreamConnection::accept_in_place(const wire::Message& head, std::span<const std::byte> payload, const BorrowedMemory& borrow) {
  return callbacks_->accept_in_place(*this, head, payload, borrow);
}

Error StreamConnection::beyond_the_window(std::size_t payload_bytes) const {
  return peer_broken(fmt::format("{} sent {} bytes beyond the window of {}", peer_, payload_bytes, receiving_.window()));
}

void StreamConnection::hold() { receiving_.hold(true); }

void StreamConnection::resume() {
  receiving_.hold(false);
  grant_what_is_owed();
}

void StreamConnection::grant_what_is_owed() {
  if (state_ != State::open) return;
  if (const std::uint64_t owed = receiving_.collect(); owed > 0) control_->grant(owed);
}

// ending ---------------------------------------------------------------------------------------------------------------------------

void StreamConnection::control_lost(const Error& why) { end(peer_broken(fmt::format("{}: {}", peer_, why.message))); }
/// The goodbye tells the sender the reason.
void StreamConnection::damaged(const Error& why) { begin_closing(peer_broken(fmt::format("{}: {}", peer_, why.message))); }
void StreamConnection::bulk_lost(const Error& why) { end(peer_broken(fmt::format("{}: {}", peer_, why.message))); }

void StreamConnection::close(const std::string& reason) { begin_closing(peer_broken(reason)); }
void StreamConnection::abandon(const std::string& reason) { end(peer_broken(reason)); }

void StreamConnection::begin_closing(const Error& why) {
  if (state_ != State::open) return;
  state_ = State::closing;
  why_ = why;
  stop_bulk();
  control_->finish(why.message);
  linger_.expires_after(options_.linger);
  linger_.async_wait([here = anchor_.watch()](boost::system::error_code cancelled) {
    if (auto* self = here.get(); self != nullptr && !cancelled) self->end(self->why_);
  });
}

/// While closing, the bulk stream stays open: its end would reach the peer before the goodbye does.
void StreamConnection::stop_bulk() {
  bulk_->detach();
  outbox_.clear();
}

void StreamConnection::end(const Error& why) {
  if (state_ == State::ended) return;
  if (state_ == State::open) why_ = why;
  state_ = State::ended;
  stop_bulk();
  bulk_->close();
  control_->detach();
  linger_.cancel();
  if (callbacks_ != nullptr) tell_closed();
}

/// Posted, because end() may be called from within any call.
void StreamConnection::tell_closed() {
  asio::post(executor_, [here = anchor_.watch()] {
    if (auto* self = here.get()) self->callbacks_->closed(*self, self->why_);
  });
}

}  // namespace motley::transport
