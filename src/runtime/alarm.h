// Calls a function once at the earliest of the times that were asked for, then takes new ones. Event-loop thread only.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <optional>
#include <utility>

#include "runtime/clock.h"
#include "transport/anchor.h"

namespace motley::runtime {

/// It may be destroyed at any time, also by the function itself.
class Alarm {
 public:
  /// `clock` outlives this.
  Alarm(boost::asio::io_context& event_loop, const Clock& clock, std::function<void()> ring)
      : timer_(event_loop), clock_(clock), ring_(std::move(ring)) {}

  void at(Instant when) {
    if (when_ && *when_ <= when) return;
    when_ = when;
    timer_.expires_after(when - clock_.now());
    timer_.async_wait([here = anchor_.watch()](const boost::system::error_code& cancelled) {
      if (cancelled || here.gone()) return;
      here.get()->when_.reset();
      const auto ring = here.get()->ring_;
      ring();
    });
  }

 private:
  boost::asio::steady_timer timer_;
  const Clock& clock_;
  std::function<void()> ring_;
  std::optional<Instant> when_;
  transport::Anchor<Alarm> anchor_{*this};
};

}  // namespace motley::runtime
