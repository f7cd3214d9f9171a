#include "transport/delay_line.h"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <utility>

namespace motley::transport {

using Clock = std::chrono::steady_clock;

struct DelayLine::Line : std::enable_shared_from_this<Line> {
  explicit Line(const boost::asio::any_io_executor& executor) : timer(executor) {}

  struct Item {
    Clock::time_point due;
    std::function<void()> action;
  };
  boost::asio::steady_timer timer;
  std::deque<Item> items;

  void wait() {
    timer.expires_at(items.front().due);
    timer.async_wait([self = weak_from_this()](boost::system::error_code cancelled) {
      if (const auto line = self.lock(); line && !cancelled) line->arrive();
    });
  }

  /// An action may add another, or destroy the line: then `items` is empty.
  void arrive() {
    while (!items.empty() && items.front().due <= Clock::now()) {
      const auto action = items.front().action;  // its item stays in front, so that an action it adds is queued
      action();
      if (!items.empty()) items.pop_front();
    }
    if (!items.empty()) wait();
  }
};

DelayLine::DelayLine(const boost::asio::any_io_executor& executor) : line_(std::make_shared<Line>(executor)) {}

void DelayLine::drop() {
  line_->items.clear();
  line_->timer.cancel();
}

void DelayLine::put(std::chrono::nanoseconds delay, std::function<void()> action) {
  auto& items = line_->items;
  if (delay <= std::chrono::nanoseconds::zero() && items.empty()) return action();
  const Clock::time_point earliest = Clock::now() + delay;
  items.push_back({items.empty() ? earliest : std::max(earliest, items.back().due), std::move(action)});
  if (items.size() == 1) line_->wait();
}

void DelayLine::flush() {
  line_->timer.cancel();
  const std::deque<Line::Item> items = std::exchange(line_->items, {});
  for (const Line::Item& item : items) item.action();
}

}  // namespace motley::transport
