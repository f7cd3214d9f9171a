// A one-shot timer: calls back once, at the earliest of the requested times, and can then be set again. Event-loop thread only.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <optional>
#include <utility>

#include "runtime/clock.h"

namespace motley::runtime {

class Alarm {
 public:
  /// `clock` outlives this.
  Alarm(boost::asio::io_context& event_loop, const Clock& clock, std::function<void()> ring)
      : timer_(event_loop), clock_(clock), ring_(std::move(ring)) {}

  void at(Instant when) {
    if (when_ && *when_ <= when) return;
    when_ = when;
    timer_.expires_after(when - clock_.now());
    timer_.async_wait([this](const boost::system::error_code& cancelled) {
      if (cancelled) return;
      when_.reset();
      ring_();
    });
  }

 private:
  boost::asio::steady_timer timer_;
  const Clock& clock_;
  std::function<void()> ring_;
  std::optional<Instant> when_;
};

}  // namespace motley::runtime
