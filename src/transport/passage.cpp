#include "transport/passage.h"

#include <algorithm>

#include "base/check.h"

namespace motley::transport {
namespace {

using Clock = std::chrono::steady_clock;

Clock::duration time_for(std::size_t bytes, double bytes_per_second) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(static_cast<double>(bytes) / bytes_per_second));
}

}  // namespace

Passage::Passage(double bytes_per_second) : bytes_per_second_(bytes_per_second) {
  check(bytes_per_second > 0, "a passage carries more than nothing");
}

Passage::Instant Passage::take(std::size_t bytes, Instant head) {
  free_ = std::max(free_, head) + time_for(bytes, bytes_per_second_);
  return free_;
}

Passage::Instant through(const Passages& passages, std::size_t bytes, double bytes_per_second, Passage::Instant tail) {
  Passage::Instant out = tail;
  for (const auto& passage : passages) {
    const double pace = bytes_per_second > 0 ? bytes_per_second : passage->bytes_per_second();
    out = std::max(out, passage->take(bytes, tail - time_for(bytes, pace)));
  }
  return out;
}

}  // namespace motley::transport
