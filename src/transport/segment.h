// Memory that two processes of one user on one host share: a memfd, which is memory with a file descriptor and without a name. A peer
// receives the descriptor (descriptor_passing.h) and maps it. A segment is sealed against shrinking, so reading it never faults, even after
// its owner has died; the kernel frees it with its last mapping.
#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "transport/descriptor.h"

namespace motley::transport {

class Segment {
 public:
  Segment() = default;
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  virtual ~Segment() = default;
  [[nodiscard]] virtual std::span<std::byte> bytes() = 0;
};

struct SharedSegment {
  std::unique_ptr<Segment> memory;
  std::shared_ptr<const Descriptor> file;  // for map_segment() in another process
};

/// Identifies the memory behind a descriptor; equal for all descriptors of the same memory.
struct SegmentId {
  std::uint64_t device{};
  std::uint64_t number{};
  auto operator<=>(const SegmentId&) const = default;
};

/// Whether this kernel supports memfd with seals.
[[nodiscard]] bool has_segments();

/// Zeroed memory of exactly that size. Fails when the kernel has no memory or no descriptor left.
Result<SharedSegment> make_segment(std::size_t bytes);

/// Maps a segment of that size that a peer made. The descriptor is not trusted: anything but a memfd sealed against shrinking, of exactly
/// that size, is refused before any access.
Result<std::unique_ptr<Segment>> map_segment(const Descriptor& file, std::size_t bytes);

/// Must be a descriptor of make_segment() or one that map_segment() accepted.
[[nodiscard]] SegmentId id_of(const Descriptor& file);

/// In bytes; a correct peer never shares more.
[[nodiscard]] std::size_t memory_of_this_machine();

}  // namespace motley::transport
