#include "transport/shared_link.h"

#include <algorithm>

#include "base/check.h"

namespace motley::transport {
namespace {

using Clock = std::chrono::steady_clock;

Clock::duration time_for(std::size_t bytes, double bytes_per_second) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(static_cast<double>(bytes) / bytes_per_second));
}

}  // namespace

SharedLink::SharedLink(double bytes_per_second) : bytes_per_second_(bytes_per_second) {
  check(bytes_per_second > 0, "a link has a positive rate");
}

SharedLink::Instant SharedLink::take(std::size_t bytes, Instant head) {
  free_ = std::max(free_, head) + time_for(bytes, bytes_per_second_);
  return free_;
}

SharedLink::Instant through(const SharedLinks& shared_links, std::size_t bytes, double bytes_per_second, SharedLink::Instant tail) {
  SharedLink::Instant out = tail;
  for (const auto& shared_link : shared_links) {
    const double pace = bytes_per_second > 0 ? bytes_per_second : shared_link->bytes_per_second();
    out = std::max(out, shared_link->take(bytes, tail - time_for(bytes, pace)));
  }
  return out;
}

}  // namespace motley::transport
