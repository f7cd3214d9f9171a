// The two ends of a ring of bytes that two processes see: one copies in, the other copies out. Pure: they only count; that bytes were laid
// or taken is told by other means (shared_frame.h), and telling it is what makes them visible to the other side.
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
  /// Copies in as much as there is room for; says how much.
  std::size_t write(std::span<const std::byte> bytes);
  /// The other side has taken so many. False when fewer lie there: a broken peer.
  [[nodiscard]] bool taken(std::uint64_t bytes);

 private:
  std::span<std::byte> ring_;
  std::size_t next_ = 0;    // where the next byte goes
  std::size_t filled_ = 0;  // laid and not taken
};

class RingReader {
 public:
  explicit RingReader(std::span<const std::byte> ring);

  /// Copies the next bytes out. Must be no more than the ring holds: who laid them may lie, but never makes us read beyond it.
  void take(std::span<std::byte> place);
  [[nodiscard]] std::size_t size() const { return ring_.size(); }

 private:
  std::span<const std::byte> ring_;
  std::size_t next_ = 0;
};

}  // namespace motley::transport
