// The shared memory segments of a peer that this process has mapped, so that slices in them can be read in place.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>

#include "base/result.h"
#include "transport/segment.h"
#include "transport/shared_frame.h"

namespace motley::transport {

/// Validates everything that the peer says: an offer before it is mapped, a slice before it is read.
class PeerSegments {
 public:
  struct Slice {
    std::span<const std::byte> payload;
    std::shared_ptr<Segment> segment;  // keeps the payload mapped
  };

  /// Maps the segment behind `file`. Refuses one that `is_ours`, one offered before, and more memory than this machine has.
  Outcome map(const SegmentOffered& offered, const Descriptor& file, const std::function<bool(const SegmentId&)>& is_ours);
  /// Slices that are still in use stay mapped.
  void unmap(std::uint32_t segment) { mapped_.erase(segment); }
  /// Refuses a slice that is not aligned or not wholly within a mapped segment.
  [[nodiscard]] Result<Slice> find(const Borrowed& borrowed) const;

 private:
  std::map<std::uint32_t, std::shared_ptr<Segment>> mapped_;  // by the peer's number
};

}  // namespace motley::transport
