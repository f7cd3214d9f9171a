// Memory that two processes of one user on one host share: a memfd, which is memory with a file descriptor and without a name. A peer is
// sent the descriptor (descriptor_passing.h) and maps it. Nobody can shrink a segment, so reading one never fails, whatever its owner does
// or however it dies; it is gone when the last process that mapped it is.
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

/// Names the memory behind a descriptor, through whatever descriptor it was reached.
struct SegmentId {
  std::uint64_t device{};
  std::uint64_t number{};
  auto operator<=>(const SegmentId&) const = default;
};

/// Whether this kernel has sealed memory.
[[nodiscard]] bool has_segments();

/// Zeroed memory of exactly that size. Fails where the kernel gives none, or when no descriptor is left.
Result<SharedSegment> make_segment(std::size_t bytes);

/// Maps what a peer made with that size. The descriptor may be anything: whatever is not a memfd sealed against shrinking, of exactly that
/// size, is refused before a byte of it is touched.
Result<std::unique_ptr<Segment>> map_segment(const Descriptor& file, std::size_t bytes);

/// Must be of a descriptor that make_segment() made or map_segment() took.
[[nodiscard]] SegmentId id_of(const Descriptor& file);

/// No honest peer shares more.
[[nodiscard]] std::size_t memory_of_this_machine();

}  // namespace motley::transport
