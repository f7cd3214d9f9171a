// A rate-limited log for events that unauthenticated peers can cause as often as they like: a few lines per second are written, the rest is
// counted.
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

/// Decides which lines are written when. Reads no clock.
class LogLimit {
 public:
  explicit LogLimit(std::uint64_t most_a_second) : most_(most_a_second) {}

  /// The lines to write now; none if the limit of this second is reached. The count of lines held back precedes the next line.
  [[nodiscard]] std::vector<std::string> say(Instant now, const std::string& sentence);
  /// When to call over(): the end of a second in which lines were held back.
  [[nodiscard]] std::optional<Instant> due() const;
  /// The line with the count of those held back, once that second is over.
  [[nodiscard]] std::optional<std::string> over(Instant now);

 private:
  std::uint64_t most_;
  std::optional<Instant> began_;  // this second
  std::uint64_t written_ = 0;     // in it
  std::uint64_t held_back_ = 0;
};

/// Writes lines and counts to `log`. Event-loop thread only.
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
