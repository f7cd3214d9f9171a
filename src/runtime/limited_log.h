// A log for what strangers can cause as often as they like: so many sentences a second are written, the rest are counted.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "runtime/clock.h"
#include "transport/anchor.h"

namespace motley::runtime {

/// What to write when. Knows no clock.
class LogLimit {
 public:
  explicit LogLimit(std::uint64_t most_a_second) : most_(most_a_second) {}

  /// The lines to write now: none when this second has had its share. A count of those held back in a second goes before the next line.
  [[nodiscard]] std::vector<std::string> say(Instant now, const std::string& sentence);
  /// When to call over(): the end of a second in which sentences were held back.
  [[nodiscard]] std::optional<Instant> due() const;
  /// The line that counts what was held back, once that second is over.
  [[nodiscard]] std::optional<std::string> over(Instant now);

 private:
  std::uint64_t most_;
  std::optional<Instant> began_;  // this second
  std::uint64_t written_ = 0;     // in it
  std::uint64_t held_back_ = 0;
};

/// Writes through `log`, on the pump's thread; the counts come by themselves.
class LimitedLog {
 public:
  LimitedLog(boost::asio::io_context& event_loop, std::function<void(const std::string&)> log);
  ~LimitedLog() = default;
  LimitedLog(const LimitedLog&) = delete;
  LimitedLog& operator=(const LimitedLog&) = delete;
  void say(const std::string& sentence);

 private:
  void await_the_count();

  std::function<void(const std::string&)> log_;
  Clock clock_;
  LogLimit limit_;
  bool awaits_ = false;
  boost::asio::steady_timer timer_;
  transport::Anchor<LimitedLog> anchor_{*this};
};

}  // namespace motley::runtime
