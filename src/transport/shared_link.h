// One direction of a link: a rate in bytes per second, shared by all connections whose slices flow through it. The simulator's arithmetic
// (sim/network.h), cut-through: a slice flows through all links at once. Pure: times in, times out.
#pragma once
#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

namespace motley::transport {

class SharedLink {
 public:
  using Instant = std::chrono::steady_clock::time_point;

  explicit SharedLink(double bytes_per_second);

  /// Schedules a slice whose first byte arrives at `head`, behind all earlier ones: free := max(free, head) + bytes / bytes_per_second.
  /// Returns when its last byte has passed.
  Instant take(std::size_t bytes, Instant head);

  [[nodiscard]] double bytes_per_second() const { return bytes_per_second_; }

 private:
  double bytes_per_second_;
  Instant free_{};
};

using SharedLinks = std::vector<std::shared_ptr<SharedLink>>;

/// Schedules a slice through all links; returns when its last byte has passed, not before `tail`, the time at which its last byte arrives.
/// `bytes_per_second` is the rate at which it arrives, which gives the time of its first byte; 0: unknown, the rate of each link is
/// assumed.
SharedLink::Instant through(const SharedLinks& shared_links, std::size_t bytes, double bytes_per_second, SharedLink::Instant tail);

}  // namespace motley::transport
