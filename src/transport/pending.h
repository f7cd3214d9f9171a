// Which handshakes are under way, and which one is dropped for a new one when there are too many. It holds no connection, only numbers.
// The source with the most loses one, so whoever floods the listener pays first. Among its own, one of the older half is drawn: an honest
// handshake that shares the flood's address has the time of half the table for sure, and a chance beyond it.
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

  /// Whoever can predict `draws` can predict who is dropped.
  Pending(std::size_t most, Rng draws) : most_(most), draws_(draws) {}

  /// The one to drop, if there is no room for another. Never the new one. Costs as many comparisons as there are sources.
  [[nodiscard]] std::optional<Id> add(Id id, const std::string& source);
  /// One that is not here is no error.
  void remove(Id id, const std::string& source);
  /// The one to drop next; none when there is none. It stays until it is removed.
  [[nodiscard]] std::optional<Id> victim();

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t most() const { return most_; }

 private:
  std::size_t most_;
  Rng draws_;
  std::map<std::string, std::deque<Id>> by_source_;  // oldest first; none is empty
  std::size_t size_ = 0;
};

}  // namespace motley::transport
