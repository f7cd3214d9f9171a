#include "transport/shaped.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "transport/constants.h"
#include "transport/refusal.h"
#include "wire/frame.h"

namespace motley::transport {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

Shaped::Shaped(std::unique_ptr<Connection> inner, const boost::asio::any_io_executor& executor, Shape shape, const Options& options)
    : Wrapped(std::move(inner)),
      options_(options),
      outbox_(options.overtakes),
      messages_(executor),
      slices_(executor),
      arrivals_(executor) {
  reshape(std::move(shape));
}

void Shaped::reshape(Shape shape) {
  check(shape.up != nullptr || shape.beyond.empty(), "links beyond a pipe need the pipe");
  const double line_bytes = shape.up ? shape.up->bytes_per_second() * std::chrono::duration<double>(shape.latency).count() : 0;
  most_chosen_bytes_ = options_.slice_bytes + static_cast<std::size_t>(line_bytes);
  shape_ = std::make_shared<const Shape>(std::move(shape));
  send_on();
}

// messages -------------------------------------------------------------------------------------------------------------------------

void Shaped::send(const wire::Message& message) {
  if (!open_) return;
  const std::size_t bytes = wire::encoded_bytes(message);
  delayed_bytes_ += bytes;
  if (delayed_bytes_ > options_.control_queue_bytes)
    return abandon(
        fmt::format("control queue full: more than {} bytes of messages are in flight to {}", options_.control_queue_bytes, peer()));
  messages_.put(shape_->latency, [this, bytes, message] {
    delayed_bytes_ -= bytes;
    inner().send(message);
  });
}

// slices that are sent -------------------------------------------------------------------------------------------------------------

void Shaped::send(const BulkMessage& bulk_message) {
  if (!open_) return;
  outbox_.push(bulk_message);
  if (outbox_.size() > options_.bulk_messages)
    return abandon(fmt::format("bulk queue full: {} takes its slices too slowly, more than {} wait", peer(), options_.bulk_messages));
  send_on();
}

/// Directly sent slices and slices through the pipe never mix: a direct one keeps its priority and could be overtaken by one chosen
/// earlier.
void Shaped::send_on() {
  if (outbox_.empty() || turn_) return;
  if (!shape_->up) return send_directly();
  if (direct_ > 0 || chosen_bytes_ > most_chosen_bytes_) return;
  turn_ = shape_;
  turn_->up->enter(anchor_.watch());
}

void Shaped::send_directly() {
  if (!chosen_.empty()) return;
  while (!outbox_.empty()) {
    ++direct_;
    inner().send(outbox_.pop());
  }
}

std::size_t Shaped::pick_slice() {
  if (outbox_.empty()) {
    turn_.reset();
    return 0;
  }
  in_pipe_ = outbox_.pop();
  in_pipe_->priority = 0;        // the choice is final: no later slice overtakes it in the inner connection
  in_pipe_->may_borrow = false;  // sent() must come when the link has carried it, not when the peer returns it
  chosen_.push_back(in_pipe_->payload.size());
  chosen_bytes_ += chosen_.back();
  return std::max<std::size_t>(1, chosen_.back());
}

void Shaped::through() {
  const auto shape = std::exchange(turn_, nullptr);
  if (!open_) return;
  const BulkMessage bulk_message = *std::exchange(in_pipe_, std::nullopt);
  const auto now = Clock::now();
  const auto out = transport::through(shape->beyond, bulk_message.payload.size(), shape->up->bytes_per_second(), now);
  slices_.put(out - now + shape->latency, [this, bulk_message] { inner().send(bulk_message); });
  send_on();
}

void Shaped::sent(Connection& inner, std::uint64_t ticket) {
  if (direct_ > 0) {
    --direct_;
  } else {
    chosen_bytes_ -= chosen_.front();
    chosen_.pop_front();
  }
  send_on();
  Wrapped::sent(inner, ticket);
}

Queued Shaped::queued() const {
  const Queued within = Wrapped::queued();
  return {within.control_bytes + delayed_bytes_, outbox_.payload_bytes() + (direct_ > 0 ? within.bulk_bytes : chosen_bytes_)};
}

// slices that arrive ---------------------------------------------------------------------------------------------------------------

std::span<std::byte> Shaped::receive_buffer(Connection& inner, const wire::Message& head, std::size_t bytes) {
  if (shape_->in.empty() && waiting_.empty()) return Wrapped::receive_buffer(inner, head, bytes);
  incoming_ = IncomingSlice{shape_, {}};
  if (!spare_.empty()) {
    incoming_->payload = std::move(spare_.back());
    spare_.pop_back();
  }
  incoming_->payload.resize(bytes);
  return incoming_->payload;
}

void Shaped::received(Connection& inner, const wire::Message& head) {
  if (!incoming_) return Wrapped::received(inner, head);
  IncomingSlice slice = std::move(*std::exchange(incoming_, std::nullopt));
  const auto now = Clock::now();
  const auto out = transport::through(slice.shape->in, slice.payload.size(), slice.shape->peer_bytes_per_second, now);
  waiting_.push_back({head, std::move(slice.payload)});
  inner.hold();
  arrivals_.put(out - now, [this] { deliver_first(); });
}

/// While slices are delayed here, a borrowed one is copied, so that the peer gets its memory back in time.
bool Shaped::accept_in_place(Connection&, const wire::Message& head, std::span<const std::byte> payload, const BorrowedMemory& borrow) {
  return shape_->in.empty() && waiting_.empty() && owner().accept_in_place(*this, head, payload, borrow);
}

void Shaped::deliver_first() {
  Waiting slice = std::move(waiting_.front());  // its queue entry stays until it is delivered, so that waiting_ is not empty meanwhile
  const std::size_t bytes = slice.payload.size();
  const auto here = anchor_.watch();
  const std::span<std::byte> place = owner().receive_buffer(*this, slice.head, bytes);
  if (here.gone() || !open_) return;
  if (place.size() != bytes || place.empty()) return close(refusal_of(slice.head, bytes, peer(), place.size()));
  std::copy(slice.payload.begin(), slice.payload.end(), place.begin());
  owner().received(*this, slice.head);
  if (here.gone() || !open_) return;
  waiting_.pop_front();
  if (spare_.size() < most_spare_buffers) spare_.push_back(std::move(slice.payload));
  grant_if_none_waits();
}

void Shaped::hold() {
  held_ = true;
  inner().hold();
}

void Shaped::resume() {
  held_ = false;
  grant_if_none_waits();
}

void Shaped::grant_if_none_waits() {
  if (waiting_.empty() && !held_) inner().resume();
}

// ending ---------------------------------------------------------------------------------------------------------------------------

void Shaped::stop() {
  open_ = false;
  outbox_.clear();
  in_pipe_.reset();
  slices_.drop();
  arrivals_.drop();
  waiting_.clear();
}

void Shaped::close(const std::string& reason) {
  stop();
  messages_.flush();
  Wrapped::close(reason);
}

void Shaped::abandon(const std::string& reason) {
  stop();
  messages_.drop();
  Wrapped::abandon(reason);
}

void Shaped::closed(Connection& inner, const Error& why) {
  stop();
  messages_.drop();
  Wrapped::closed(inner, why);
}

}  // namespace motley::transport
