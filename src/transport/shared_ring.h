// The two ends of a ring buffer in memory shared by two processes: one copies in, the other copies out. Pure: the ends only count. The lane
// reports the counts in frames (shared_frame.h), which also makes the written bytes visible to the other process.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace motley::transport {

class RingWriter {
 public:
  /// `ring` outlives it and is not empty.
  explicit RingWriter(std::span<std::byte> ring);

  [[nodiscard]] std::size_t free_bytes() const { return ring_.size() - filled_; }
  /// Copies in as much as fits; returns the number of bytes.
  std::size_t write(std::span<const std::byte> bytes);
  /// The peer has read this many bytes. False when fewer were written: a broken peer.
  [[nodiscard]] bool taken(std::uint64_t bytes);

 private:
  std::span<std::byte> ring_;
  std::size_t next_ = 0;    // position of the next byte
  std::size_t filled_ = 0;  // bytes written and not yet read
};

class RingReader {
 public:
  explicit RingReader(std::span<const std::byte> ring);

  /// Copies the next bytes out. At most the size of the ring, so that a lying peer cannot make us read beyond it.
  void take(std::span<std::byte> place);
  [[nodiscard]] std::size_t size() const { return ring_.size(); }

 private:
  std::span<const std::byte> ring_;
  std::size_t next_ = 0;
};

}  // namespace motley::transport
