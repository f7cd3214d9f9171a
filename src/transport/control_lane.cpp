#include "transport/control_lane.h"

#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>

#include "transport/constants.h"

namespace motley::transport {

ControlLane::ControlLane(Stream stream, Owner& owner) : stream_(std::move(stream)), owner_(&owner) {}

// reading --------------------------------------------------------------------------------------------------------------------------

void ControlLane::start_reading() { asio::co_spawn(stream_.get_executor(), read(shared_from_this()), rethrow); }

asio::awaitable<void> ControlLane::read(std::shared_ptr<ControlLane> self) {
  while (self->handle_frames()) {
    const bool more = co_await self->read_more();
    if (!more) co_return;
  }
}

/// Hands every whole frame of the input to the owner. False once the lane has ended.
bool ControlLane::handle_frames() {
  std::size_t used = 0;
  while (owner_ != nullptr) {
    auto parsed = parse_control(std::span(input_).first(input_used_).subspan(used));
    if (!parsed.ok()) {
      lose(parsed.error());
      return false;
    }
    if (std::holds_alternative<wire::Incomplete>(*parsed)) break;
    auto& whole = std::get<ParsedControlFrame>(*parsed);
    used += whole.bytes;
    owner_->control_received(std::move(whole.frame));
  }
  input_.resize(input_used_);
  input_.erase(input_.begin(), input_.begin() + static_cast<std::ptrdiff_t>(used));
  input_used_ -= used;
  return owner_ != nullptr;
}

asio::awaitable<bool> ControlLane::read_more() {
  input_.resize(input_used_ + control_read_bytes);
  const auto [failed, bytes] = co_await stream_.async_read_some(asio::buffer(input_) + input_used_, as_values);
  if (owner_ == nullptr) co_return false;
  if (failed) {
    lose(peer_broken(fmt::format("the control lane ended: {}", failed.message())));
    co_return false;
  }
  input_used_ += bytes;
  co_return true;
}

// writing --------------------------------------------------------------------------------------------------------------------------

void ControlLane::send(const wire::Message& message) {
  append_message(message, queued_);
  wake_writer();
}

void ControlLane::grant(std::uint64_t bytes) {
  owed_credit_ += bytes;
  wake_writer();
}

void ControlLane::finish(const std::string& reason) {
  owed_credit_ = 0;  // the goodbye is the last frame
  append_goodbye(reason, queued_);
  finishing_ = true;
  wake_writer();
}

void ControlLane::wake_writer() {
  if (writer_runs_) return;
  writer_runs_ = true;
  // Posted: all messages that the owner sends in this turn go in one write.
  asio::post(stream_.get_executor(),
             [self = shared_from_this()] { asio::co_spawn(self->stream_.get_executor(), self->write(self), rethrow); });
}

asio::awaitable<void> ControlLane::write(std::shared_ptr<ControlLane> self) {
  while (self->take_queued()) {
    const bool out = co_await self->write_out();
    if (!out) co_return;
  }
  self->writer_runs_ = false;
  boost::system::error_code ignored;
  if (self->finishing_) self->stream_.shutdown(Stream::shutdown_send, ignored);  // NOLINT(bugprone-unused-return-value): the same error
}

bool ControlLane::take_queued() {
  if (owed_credit_ > 0) append_credit(std::exchange(owed_credit_, 0), queued_);
  writing_.clear();
  written_ = 0;
  std::swap(writing_, queued_);
  return owner_ != nullptr && !writing_.empty();
}

asio::awaitable<bool> ControlLane::write_out() {
  while (written_ < writing_.size()) {
    const auto [failed, bytes] = co_await stream_.async_write_some(asio::buffer(writing_) + written_, as_values);
    if (owner_ == nullptr || failed) co_return false;  // the reading half learns the reason, perhaps the peer's own
    written_ += bytes;
  }
  co_return true;
}

// ending ---------------------------------------------------------------------------------------------------------------------------

void ControlLane::lose(const Error& why) { std::exchange(owner_, nullptr)->control_lost(why); }

void ControlLane::detach() {
  owner_ = nullptr;
  close_quietly(stream_);
}

}  // namespace motley::transport
