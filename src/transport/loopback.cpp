#include "transport/loopback.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <deque>
#include <optional>

#include "base/check.h"
#include "transport/anchor.h"
#include "transport/control_frame.h"
#include "transport/credits.h"
#include "transport/outbox.h"
#include "transport/refusal.h"
#include "wire/frame.h"

namespace motley::transport {
namespace {

namespace asio = boost::asio;

/// Frames wait in the sender's `control_` until the receiver has started; then one is delivered per turn of the io_context. A slice takes
/// two turns, receive_buffer() in one and received() in the next, so that a connection can end in between.
class LoopbackEnd final : public Connection {
 public:
  LoopbackEnd(asio::io_context& io, const Options& options, std::string name)
      : io_(io), options_(options), name_(std::move(name)), outbox_(options.overtakes), receiving_(options.window_bytes) {}
  LoopbackEnd(const LoopbackEnd&) = delete;
  LoopbackEnd& operator=(const LoopbackEnd&) = delete;
  ~LoopbackEnd() override {
    if (auto* other = peer_.get()) other->peer_vanished();
  }

  void join(LoopbackEnd& other) { peer_ = other.anchor_.watch(); }

  void start(ConnectionCallbacks& callbacks) override {
    check(callbacks_ == nullptr, "a connection is started once");
    callbacks_ = &callbacks;
    if (state_ == State::ended) return tell_closed();
    say(Credit{receiving_.window()});
    if (auto* other = peer_.get()) other->wake();
  }

  void send(const wire::Message& message) override {
    if (state_ != State::open) return;
    say(message);
    if (control_bytes_ > options_.control_queue_bytes)
      end(peer_broken(fmt::format("control queue full: {} takes its messages too slowly, more than {} bytes wait", name_,
                                  options_.control_queue_bytes)));
  }

  void send(const BulkMessage& bulk_message) override {
    check(bulk_message.payload.size() <= options_.largest_payload_bytes, "a payload is no larger than Options::largest_payload_bytes");
    if (state_ != State::open) return;
    outbox_.push(bulk_message);
    if (outbox_.size() > options_.bulk_messages)
      return end(
          peer_broken(fmt::format("bulk queue full: {} takes its slices too slowly, more than {} wait", name_, options_.bulk_messages)));
    wake();
  }

  void hold() override { receiving_.hold(true); }
  void resume() override {
    receiving_.hold(false);
    grant_what_is_owed();
  }

  void close(const std::string& reason) override {
    if (state_ != State::open) return;
    say(Goodbye{reason});
    state_ = State::closing;
    why_ = peer_broken(reason);
    outbox_.clear();
  }
  void abandon(const std::string& reason) override { end(peer_broken(reason)); }

  [[nodiscard]] const std::string& peer() const override { return name_; }
  [[nodiscard]] Queued queued() const override {
    return {control_bytes_, outbox_.payload_bytes() + (passing_ ? passing_->payload.size() : 0)};
  }

 private:
  enum class State { open, closing, ended };

  [[nodiscard]] bool callbacks() const { return callbacks_ != nullptr && state_ == State::open; }
  [[nodiscard]] LoopbackEnd* listening_peer() const {
    auto* other = peer_.get();
    return other != nullptr && other->callbacks_ != nullptr ? other : nullptr;
  }

  template <class Turn>
  void post(Turn turn) {
    asio::post(io_, [here = anchor_.watch(), turn] {
      if (auto* self = here.get()) (self->*turn)();
    });
  }

  void wake() {
    if (!control_.empty() && !control_runs_) control_runs_ = true, post(&LoopbackEnd::pass_control);
    if (!outbox_.empty() && !bulk_runs_) bulk_runs_ = true, post(&LoopbackEnd::begin_slice);
  }

  // control lane

  void say(ControlFrame reported) {
    const auto* message = std::get_if<wire::Message>(&reported);
    control_bytes_ += message != nullptr ? wire::encoded_bytes(*message) : 0;
    control_.push_back(std::move(reported));
    wake();
  }

  void pass_control() {
    control_runs_ = false;
    auto* other = listening_peer();
    if (state_ == State::ended || control_.empty() || other == nullptr) return;
    const ControlFrame reported = std::move(control_.front());
    control_.pop_front();
    wake();
    std::visit([&](const auto& word) { pass(*other, word); }, reported);
  }

  void pass(LoopbackEnd& other, const wire::Message& message) {
    control_bytes_ -= wire::encoded_bytes(message);
    if (other.callbacks()) other.callbacks_->on_message(other, message);
  }
  void pass(LoopbackEnd& other, const Credit& credit) {
    check(other.sending_.grant(credit.bytes), "a loopback grants only bytes in flight");
    other.wake();
  }
  void pass(LoopbackEnd& other, const Goodbye& goodbye) {
    other.end(peer_broken(fmt::format("{} closed the connection: {}", other.name_, goodbye.reason)));  // this ends our side, too
  }

  // bulk lane

  void begin_slice() {
    bulk_runs_ = false;
    auto* other = listening_peer();
    if (state_ != State::open || other == nullptr || outbox_.empty() || !sending_.covers(outbox_.next().payload.size())) return;
    bulk_runs_ = true;
    passing_ = outbox_.pop();
    const std::size_t bytes = passing_->payload.size();
    sending_.spend(bytes);
    if (!other->callbacks()) return;
    check(other->receiving_.announce(bytes), "a loopback stays within the window");
    const auto here = anchor_.watch(), there = other->anchor_.watch();
    const std::span<std::byte> place = other->callbacks_->receive_buffer(*other, passing_->head, bytes);
    if (here.gone() || there.gone() || !passing_ || !other->callbacks()) return;
    if (place.size() != bytes || place.empty()) return other->refuse(passing_->head, bytes, place.size());
    std::copy(passing_->payload.begin(), passing_->payload.end(), place.begin());
    post(&LoopbackEnd::end_slice);
  }

  void end_slice() {
    if (state_ != State::open || !passing_) return;
    const BulkMessage bulk_message = *std::exchange(passing_, std::nullopt);
    bulk_runs_ = false;
    wake();
    const auto here = anchor_.watch();
    if (auto* other = listening_peer(); other && other->callbacks()) other->take(bulk_message);
    if (!here.gone() && callbacks()) callbacks_->sent(*this, bulk_message.ticket);
  }

  void take(const BulkMessage& bulk_message) {
    receiving_.arrived(bulk_message.payload.size());
    const auto here = anchor_.watch();
    callbacks_->received(*this, bulk_message.head);
    if (!here.gone()) grant_what_is_owed();
  }

  void refuse(const wire::Message& head, std::size_t bytes, std::size_t room) { close(refusal_of(head, bytes, name_, room)); }

  void grant_what_is_owed() {
    if (state_ != State::open) return;
    if (const std::uint64_t owed = receiving_.collect(); owed > 0) say(Credit{owed});
  }

  // ending

  void peer_vanished() { end(peer_broken(fmt::format("{}: the connection ended", name_))); }

  void end(const Error& why) {
    if (state_ == State::ended) return;
    if (state_ == State::open) why_ = why;
    state_ = State::ended;
    outbox_.clear();
    passing_.reset();
    if (callbacks_ != nullptr) tell_closed();
    if (auto* other = peer_.get()) other->peer_vanished();
  }

  void tell_closed() { post(&LoopbackEnd::say_closed); }
  void say_closed() { callbacks_->closed(*this, why_); }

  asio::io_context& io_;
  Options options_;
  std::string name_;
  Watch<LoopbackEnd> peer_;
  ConnectionCallbacks* callbacks_ = nullptr;  // null before start()
  State state_ = State::open;
  Error why_;  // once not open

  std::deque<ControlFrame> control_;
  std::size_t control_bytes_ = 0;  // of the messages in it
  bool control_runs_ = false;

  Outbox outbox_;
  std::optional<BulkMessage> passing_;  // between receive_buffer() and received()
  bool bulk_runs_ = false;
  SendCredits sending_;
  ReceiveCredits receiving_;

  Anchor<LoopbackEnd> anchor_{*this};
};

}  // namespace

LoopbackPair loopback(asio::io_context& io, const Options& options) {
  auto left = std::make_unique<LoopbackEnd>(io, options, "loopback:right");
  auto right = std::make_unique<LoopbackEnd>(io, options, "loopback:left");
  left->join(*right);
  right->join(*left);
  return {std::move(left), std::move(right)};
}

}  // namespace motley::transport
