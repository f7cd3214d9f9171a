#include "runtime/limited_log.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/constants.h"

namespace motley::runtime {
namespace {

constexpr Duration window = from_seconds(1);

/// 1234567 as 1,234,567.
std::string in_thousands(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t place = text.size(); place > 3;) text.insert(place -= 3, ",");
  return text;
}

}  // namespace

std::vector<std::string> LogLimit::say(Instant now, const std::string& sentence) {
  std::vector<std::string> lines;
  if (auto count = over(now)) lines.push_back(std::move(*count));
  if (!began_ || now - *began_ >= window) {
    began_ = now;
    written_ = 0;
  }
  if (written_ < most_) {
    ++written_;
    lines.push_back(sentence);
  } else {
    ++held_back_;
  }
  return lines;
}

std::optional<Instant> LogLimit::due() const { return held_back_ > 0 ? std::optional(*began_ + window) : std::nullopt; }

std::optional<std::string> LogLimit::over(Instant now) {
  if (const auto end = due(); !end || now < *end) return std::nullopt;
  return fmt::format("and {} more in the last second", in_thousands(std::exchange(held_back_, 0)));
}

LimitedLog::LimitedLog(boost::asio::io_context& event_loop, std::function<void(const std::string&)> log)
    : log_(std::move(log)), limit_(log_lines_per_second), timer_(event_loop) {}

void LimitedLog::say(const std::string& sentence) {
  for (const std::string& line : limit_.say(clock_.now(), sentence)) log_(line);
  if (limit_.due() && !awaits_) await_the_count();
}

/// A handler that is cancelled, or runs after this is destroyed, does nothing.
void LimitedLog::await_the_count() {
  awaits_ = true;
  timer_.expires_at(clock_.real(*limit_.due()));
  timer_.async_wait([here = anchor_.watch()](const boost::system::error_code&) {
    LimitedLog* self = here.get();
    if (self == nullptr) return;
    self->awaits_ = false;
    if (const auto count = self->limit_.over(self->clock_.now())) self->log_(*count);
    if (self->limit_.due()) self->await_the_count();
  });
}

}  // namespace motley::runtime
