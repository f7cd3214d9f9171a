// The thread that owns a server's parameters and optimizer state (store::ShardStore), and the thread pool that it computes with. Work is
// posted to it from the event loop; results are delivered to the event loop.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include "runtime/initial_state.h"
#include "runtime/task_thread.h"
#include "store/layout.h"
#include "store/shard_store.h"
#include "store/thread_pool.h"
#include "transport/anchor.h"

namespace motley::runtime {

/// Made, destroyed and called on the event-loop thread, except where a function says otherwise. Work that has not begun when this is
/// destroyed is dropped.
class StoreThread {
 public:
  /// `threads`: size of the pool; 0: as many as are useful for this server's share of the model. Results do not depend on it, bit for bit.
  StoreThread(boost::asio::io_context& event_loop, const store::Layout& layout, ServerId server, const OptimizerSpec& optimizer,
              const InitialState& initial_state, std::size_t threads);

  /// Runs work(ShardStore&) on the thread, after all work posted before it. It must not throw.
  template <class Work>
  void run(Work work) {
    thread_.post([this, work = std::move(work)]() mutable { work(store_); });
  }
  /// The same, and then `then(result)` on the event loop (`then()` if `work` returns nothing), unless this object is gone by then.
  template <class Work, class Then>
  void run(Work work, Then then) {
    thread_.post([this, work = std::move(work), then = std::move(then)]() mutable {
      if constexpr (std::is_void_v<std::invoke_result_t<Work&, store::ShardStore&>>) {
        work(store_);
        deliver(std::move(then));
      } else {
        deliver([then = std::move(then), result = work(store_)]() mutable { then(std::move(result)); });
      }
    });
  }

  /// Runs `handler` on the event loop unless this object is gone by then. From any thread.
  template <class Handler>
  void deliver(Handler handler) {
    boost::asio::post(event_loop_, [alive = anchor_.watch(), handler = std::move(handler)]() mutable {
      if (!alive.gone()) handler();
    });
  }

  /// For work on this thread, which may keep a reference to it.
  [[nodiscard]] const std::shared_ptr<store::ThreadPool>& pool() const { return pool_; }

 private:
  boost::asio::io_context& event_loop_;
  transport::Anchor<StoreThread> anchor_{*this};  // handlers check it on the event loop only
  std::shared_ptr<store::ThreadPool> pool_;
  store::ShardStore store_;
  TaskThread thread_;  // last: it is joined before the others are destroyed
};

}  // namespace motley::runtime
