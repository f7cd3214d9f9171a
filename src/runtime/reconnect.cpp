#include "runtime/reconnect.h"

#include <fmt/format.h>

#include <algorithm>

namespace motley::runtime {

void ReconnectPolicy::settled() {
  alone_since_.reset();
  refused_since_.reset();
  next_pause_ = options_.first_pause;
}

Result<Duration> ReconnectPolicy::lost(Instant now, const Error& why) {
  if (why.next == Next::tell_user) return why;
  if (!alone_since_) alone_since_ = now;
  const bool refused = !proven_ && why.next == Next::drop_peer;
  if (!refused) refused_since_.reset();
  if (refused && !refused_since_) refused_since_ = now;
  if (refused && now - *refused_since_ >= std::min(options_.first_contact, options_.patience)) return bad_input(why.message);
  if (const Duration alone = now - *alone_since_; alone > options_.patience)
    return world_failed(fmt::format("no chief at {} for {:.0f} s; last: {}", chief_, seconds(alone), why.message));
  const Duration pause = next_pause_;
  next_pause_ = std::min(next_pause_ * 2, options_.longest_pause);
  return from_seconds(seconds(pause) * (1 + jitter_.uniform()) / 2);
}

Reconnect::Reconnect(boost::asio::io_context& event_loop, const ReconnectOptions& options, std::string name, std::string chief,
                     std::function<void(const std::string&)> log)
    : name_(std::move(name)), log_(std::move(log)), policy_(options, std::move(chief), Rng(0, name_)), pause_(event_loop) {}

void Reconnect::settled() {
  policy_.settled();
  last_reported_.clear();
}

Outcome Reconnect::lost(const Error& why, std::function<void()> again) {
  const Result<Duration> pause = policy_.lost(clock_.now(), why);
  if (!pause) return Error{pause.error().next, fmt::format("{}: {}", name_, pause.error().message)};
  if (last_reported_ != why.message) log_(fmt::format("{}; trying again", last_reported_ = why.message));
  pause_.expires_after(*pause);
  pause_.async_wait([here = anchor_.watch(), again = std::move(again)](const boost::system::error_code& cancelled) {
    if (!cancelled && !here.gone()) again();
  });
  return Done{};
}

}  // namespace motley::runtime
