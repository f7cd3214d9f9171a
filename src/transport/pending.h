// The handshakes in progress, and which one is dropped for a new one when there are too many. Holds ids, not connections.
// The source with the most handshakes loses one, so a flood costs its own source first. Within that source, one of the older half is drawn
// at random: an honest handshake from the same address always has the time in which half the table fills, and a chance beyond that.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "base/rng.h"

namespace motley::transport {

class Pending {
 public:
  using Id = std::uint64_t;

  /// `draws` must be unpredictable to peers, or they can choose which handshake is dropped.
  Pending(std::size_t most, Rng draws) : most_(most), draws_(draws) {}

  /// Returns the handshake to drop when the table is full; never the new one. Costs one comparison per source.
  [[nodiscard]] std::optional<Id> add(Id id, const std::string& source);
  /// Does nothing when the id is unknown.
  void remove(Id id, const std::string& source);
  /// The handshake to drop next; none when the table is empty. It stays until remove().
  [[nodiscard]] std::optional<Id> victim();

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t most() const { return most_; }

 private:
  std::size_t most_;
  Rng draws_;
  std::map<std::string, std::deque<Id>> by_source_;  // oldest first; no deque is empty
  std::size_t size_ = 0;
};

}  // namespace motley::transport
