#include "transport/pipe.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <optional>
#include <utility>

#include "base/check.h"
#include "transport/constants.h"

namespace motley::transport {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

struct Pipe::Queue : std::enable_shared_from_this<Queue> {
  Queue(const boost::asio::any_io_executor& executor, double rate) : timer(executor), bytes_per_second(rate) {}

  boost::asio::steady_timer timer;
  double bytes_per_second;
  std::deque<Watch<PipeUser>> pipe_users;  // in the order of their turns
  std::optional<Watch<PipeUser>> inside;
  bool runs = false;  // a turn is posted or a timer set
  Clock::time_point free_at{};

  void wake() {
    if (runs || pipe_users.empty()) return;
    runs = true;
    boost::asio::post(timer.get_executor(), [self = weak_from_this()] {
      if (const auto queue = self.lock()) queue->turn();
    });
  }

  /// Completes the transfer in the pipe and begins the next ones, until one has to wait.
  void turn() {
    while (inside || !pipe_users.empty()) {
      if (!inside && !let_in()) continue;
      if (free_at > Clock::now()) return wait();
      let_out();
    }
    runs = false;
  }

  /// False when the next user is gone or has no slice to send. That user may release the pipe, and destroy it.
  bool let_in() {
    const Watch<PipeUser> next = pipe_users.front();
    pipe_users.pop_front();
    PipeUser* pipe_user = next.get();
    const std::size_t bytes = pipe_user != nullptr ? pipe_user->pick_slice() : 0;
    if (bytes == 0) return false;
    const auto takes = std::chrono::duration<double>(static_cast<double>(bytes) / bytes_per_second);
    free_at = std::max(free_at, Clock::now() - pipe_catch_up) + std::chrono::duration_cast<Clock::duration>(takes);
    inside = next;
    return true;
  }

  void let_out() {
    const Watch<PipeUser> pipe_user = *std::exchange(inside, std::nullopt);
    if (auto* out = pipe_user.get()) out->through();
  }

  void wait() {
    timer.expires_at(free_at);
    timer.async_wait([self = weak_from_this()](boost::system::error_code cancelled) {
      if (const auto queue = self.lock(); queue && !cancelled) queue->turn();
    });
  }
};

Pipe::Pipe(const boost::asio::any_io_executor& executor, double bytes_per_second)
    : queue_(std::make_shared<Queue>(executor, bytes_per_second)) {
  check(bytes_per_second > 0, "a pipe has a positive rate");
}

Pipe::~Pipe() {
  queue_->pipe_users.clear();
  queue_->inside.reset();
  queue_->timer.cancel();
}

double Pipe::bytes_per_second() const { return queue_->bytes_per_second; }

void Pipe::enter(const Watch<PipeUser>& pipe_user) {
  queue_->pipe_users.push_back(pipe_user);
  queue_->wake();
}

}  // namespace motley::transport
