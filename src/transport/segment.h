// Memory that two processes of one host see. Made and found by UCX where the build has it (ucx/); without it there is none (no_ucx/).
// Whoever has the key and this process's permissions may map it; it is gone when the last one who mapped it is, by whatever death.
#pragma once
#include <cstddef>
#include <memory>
#include <span>

#include "base/result.h"
#include "wire/frame.h"

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
  wire::Bytes key;  // for find_segment() in another process of this host; at most longest_segment_key bytes
};

inline constexpr std::size_t longest_segment_key = 256;

/// Whether this build has UCX.
[[nodiscard]] bool has_segments();

/// Zeroed memory of exactly that size. Fails where the machine gives none: no UCX, a full /dev/shm.
Result<SharedSegment> make_segment(std::size_t bytes);

/// Maps what another process made with that size. Fails where it cannot be reached: another host, another container, another user. The key
/// must come from a peer that proved the token: a false one may name any shared memory of this user.
Result<std::unique_ptr<Segment>> find_segment(std::span<const std::byte> key, std::size_t bytes);

}  // namespace motley::transport
