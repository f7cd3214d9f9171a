// Calls a function once every period until it is stopped. Event-loop thread only.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <utility>

#include "base/time.h"
#include "transport/anchor.h"

namespace motley::runtime {

class PeriodicTimer {
 public:
  explicit PeriodicTimer(boost::asio::io_context& event_loop) : timer_(event_loop) {}
  PeriodicTimer(const PeriodicTimer&) = delete;
  PeriodicTimer& operator=(const PeriodicTimer&) = delete;
  ~PeriodicTimer() = default;

  /// Replaces the function and the period of an earlier start(). The first call is one period from now. The function may stop, start or
  /// destroy this timer.
  void start(Duration period, std::function<void()> on_tick) {
    ++starts_;
    wait(period, std::move(on_tick));
  }
  void stop() {
    ++starts_;
    timer_.cancel();
  }

 private:
  void wait(Duration period, std::function<void()> on_tick) {
    timer_.expires_after(period);
    timer_.async_wait([here = anchor_.watch(), start = starts_, period,
                       on_tick = std::move(on_tick)](const boost::system::error_code& cancelled) mutable {
      if (cancelled || here.gone() || start != here.get()->starts_) return;
      on_tick();
      if (!here.gone() && start == here.get()->starts_) here.get()->wait(period, std::move(on_tick));
    });
  }

  boost::asio::steady_timer timer_;
  std::uint64_t starts_ = 0;  // calls of start() and stop(): a tick of an earlier start is ignored
  transport::Anchor<PeriodicTimer> anchor_{*this};
};

}  // namespace motley::runtime
