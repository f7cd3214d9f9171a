#include "transport/shaped.h"

#include <fmt/format.h>

#include <algorithm>

#include "wire/frame.h"

namespace motley::transport {

Shaped::Shaped(std::unique_ptr<Connection> inner, const boost::asio::any_io_executor& executor, Shape shape, const Options& options)
    : Wrapped(std::move(inner)),
      shape_(std::move(shape)),
      options_(options),
      outbox_(options.overtakes),
      most_chosen_bytes_(options.slice_bytes +
                         static_cast<std::size_t>(shape_.up->bytes_per_second() * std::chrono::duration<double>(shape_.latency).count())),
      messages_(executor),
      slices_(executor) {}

// messages -------------------------------------------------------------------------------------------------------------------------

void Shaped::send(const wire::Message& message) {
  if (!open_) return;
  const std::size_t bytes = wire::encoded_bytes(message);
  delayed_bytes_ += bytes;
  if (delayed_bytes_ > options_.control_queue_bytes)
    return abandon(
        fmt::format("control queue full: more than {} bytes of messages are under way to {}", options_.control_queue_bytes, peer()));
  messages_.put(shape_.latency, [this, bytes, message] {
    delayed_bytes_ -= bytes;
    inner().send(message);
  });
}

// slices ---------------------------------------------------------------------------------------------------------------------------

void Shaped::send(const Parcel& parcel) {
  if (!open_) return;
  outbox_.push(parcel);
  if (outbox_.size() > options_.parcels)
    return abandon(fmt::format("bulk queue full: {} takes its slices too slowly, more than {} wait", peer(), options_.parcels));
  enter_pipe();
}

void Shaped::enter_pipe() {
  if (in_turn_ || outbox_.empty() || chosen_bytes_ > most_chosen_bytes_) return;
  in_turn_ = true;
  shape_.up->enter(anchor_.watch());
}

std::size_t Shaped::board() {
  if (outbox_.empty()) {
    in_turn_ = false;
    return 0;
  }
  riding_ = outbox_.pop();
  riding_->priority = 0;  // chosen is chosen: nothing overtakes it further on
  chosen_.push_back(riding_->payload.size());
  chosen_bytes_ += chosen_.back();
  return std::max<std::size_t>(1, chosen_.back());
}

void Shaped::through() {
  in_turn_ = false;
  if (!open_) return;
  slices_.put(shape_.latency, [this, parcel = *std::exchange(riding_, std::nullopt)] { inner().send(parcel); });
  enter_pipe();
}

void Shaped::sent(Connection& inner, std::uint64_t ticket) {
  chosen_bytes_ -= chosen_.front();
  chosen_.pop_front();
  enter_pipe();
  Wrapped::sent(inner, ticket);
}

Queued Shaped::queued() const { return {Wrapped::queued().control_bytes + delayed_bytes_, outbox_.payload_bytes() + chosen_bytes_}; }

// ending ---------------------------------------------------------------------------------------------------------------------------

void Shaped::stop() {
  open_ = false;
  outbox_.clear();
  riding_.reset();
  slices_.drop();
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
