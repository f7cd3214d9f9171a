// Runs actions after a delay, in the order in which they were added: the latency of a link.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <functional>
#include <memory>

namespace motley::transport {

class DelayLine {
 public:
  explicit DelayLine(const boost::asio::any_io_executor& executor);
  DelayLine(const DelayLine&) = delete;
  DelayLine& operator=(const DelayLine&) = delete;
  ~DelayLine() { drop(); }

  /// Runs the action after `delay`, and never before an earlier one. Within this call when there is no delay and nothing waits.
  void put(std::chrono::nanoseconds delay, std::function<void()> action);
  /// Runs all waiting actions now.
  void flush();
  /// Discards all waiting actions.
  void drop();

 private:
  struct Line;
  std::shared_ptr<Line> line_;
};

}  // namespace motley::transport
