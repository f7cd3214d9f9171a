// Things that happen later, in the order they were put in: the length of a wire.
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

  /// After `delay`, and never before what was put in earlier. At once, within this call, when there is no delay and nothing under way.
  void put(std::chrono::nanoseconds delay, std::function<void()> happen);
  /// All that is under way happens now.
  void flush();
  /// All that is under way never happens.
  void drop();

 private:
  struct Line;
  std::shared_ptr<Line> line_;
};

}  // namespace motley::transport
