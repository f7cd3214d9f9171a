// The order in which the processes of a cluster end: first workers, then servers, each group within a time limit.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

#include "transport/anchor.h"

namespace motley::runtime {

/// Workers were sent Stop before begin(). Event-loop thread only.
class ShutdownSequence {
 public:
  enum class Next { wait, stop_servers, end };

  /// `advance` is called when next() may have changed because of time.
  ShutdownSequence(boost::asio::io_context& event_loop, std::function<void()> advance)
      : event_loop_(event_loop), advance_(std::move(advance)), timer_(event_loop) {}

  /// The time limit of the workers starts.
  void begin();
  /// The next thing to do, by which processes are still connected. `stop_servers` is returned once; then the time limit of the servers
  /// starts.
  Next next(bool workers, bool servers);
  void cancel() { timer_.cancel(); }

 private:
  void start_time_limit();

  boost::asio::io_context& event_loop_;
  std::function<void()> advance_;
  bool time_is_up_ = false;
  std::uint32_t starts_ = 0;  // of the timer: a handler that was queued before the last one is ignored
  bool servers_stopped_ = false;
  boost::asio::steady_timer timer_;
  transport::Anchor<ShutdownSequence> anchor_{*this};
};

}  // namespace motley::runtime
