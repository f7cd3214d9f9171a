// Runs tasks on a thread of its own, one at a time and in order, and passes each result back to the event loop.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include "runtime/task_thread.h"
#include "transport/anchor.h"

namespace motley::runtime {

/// Its methods are called on the event-loop thread.
class BackgroundThread {
 public:
  explicit BackgroundThread(boost::asio::io_context& event_loop) : event_loop_(event_loop) {}

  /// Calls `work()` on the background thread, then `done(result)` on the event-loop thread unless this was destroyed meanwhile. `work`
  /// must not throw. The destructor waits for work that has begun; later work is dropped.
  template <class Work, class Completion>
  void run(Work work, Completion done) {
    ++unfinished_;
    thread_.post([&event_loop = event_loop_, here = anchor_.watch(), work = std::move(work), done = std::move(done)]() mutable {
      const auto result = std::make_shared<std::invoke_result_t<Work&>>(work());
      boost::asio::post(event_loop, [here, result, done = std::move(done)]() mutable {
        if (here.gone()) return;
        --here.get()->unfinished_;
        done(std::move(*result));
      });
    });
  }
  /// No `done` is outstanding.
  [[nodiscard]] bool idle() const { return unfinished_ == 0; }

 private:
  boost::asio::io_context& event_loop_;
  std::size_t unfinished_ = 0;
  transport::Anchor<BackgroundThread> anchor_{*this};
  TaskThread thread_;  // last: ends first
};

}  // namespace motley::runtime
