#include "transport/shared_ring.h"

#include <algorithm>

#include "base/check.h"

namespace motley::transport {

RingWriter::RingWriter(std::span<std::byte> ring) : ring_(ring) { check(!ring.empty(), "a ring is not empty"); }

std::size_t RingWriter::write(std::span<const std::byte> bytes) {
  bytes = bytes.first(std::min(bytes.size(), free_bytes()));
  const std::size_t before_the_end = std::min(bytes.size(), ring_.size() - next_);
  std::copy_n(bytes.begin(), before_the_end, ring_.begin() + static_cast<std::ptrdiff_t>(next_));
  std::copy(bytes.begin() + static_cast<std::ptrdiff_t>(before_the_end), bytes.end(), ring_.begin());
  next_ = (next_ + bytes.size()) % ring_.size();
  filled_ += bytes.size();
  return bytes.size();
}

bool RingWriter::taken(std::uint64_t bytes) {
  if (bytes > filled_) return false;
  filled_ -= bytes;
  return true;
}

RingReader::RingReader(std::span<const std::byte> ring) : ring_(ring) { check(!ring.empty(), "a ring is not empty"); }

void RingReader::take(std::span<std::byte> place) {
  check(place.size() <= ring_.size(), "one take() is no larger than the ring");
  const std::size_t before_the_end = std::min(place.size(), ring_.size() - next_);
  std::copy_n(ring_.begin() + static_cast<std::ptrdiff_t>(next_), before_the_end, place.begin());
  std::copy_n(ring_.begin(), place.size() - before_the_end, place.begin() + static_cast<std::ptrdiff_t>(before_the_end));
  next_ = (next_ + place.size()) % ring_.size();
}

}  // namespace motley::transport
