// One direction of a link on a slice's way: so many bytes a second, shared by all the connections whose slices flow through it. The
// simulator's arithmetic (sim/network.h), cut-through: a slice flows through all passages at once. Pure: times in, times out.
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

  /// A slice whose first byte was here at `head`, behind all that were taken before: free := max(free, head) + bytes / bytes_per_second.
  /// Returns when its last byte is through.
  Instant take(std::size_t bytes, Instant head);

  [[nodiscard]] double bytes_per_second() const { return bytes_per_second_; }

 private:
  double bytes_per_second_;
  Instant free_{};
};

using SharedLinks = std::vector<std::shared_ptr<SharedLink>>;

/// Takes a slice through all of them; returns when it is through, not before `tail`, when its last byte arrives.
/// `bytes_per_second` is the pace at which it comes, and so tells when its head was here; 0: unknown, it comes as fast as each passage is.
SharedLink::Instant through(const SharedLinks& shared_links, std::size_t bytes, double bytes_per_second, SharedLink::Instant tail);

}  // namespace motley::transport
