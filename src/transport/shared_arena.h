// Memory of this process that peers on this host may read in place. It is allocated in large blocks, each a segment (segment.h) with its
// own number; a lane that sends a slice of a block names the segment and the offset (shared_bulk.h). Any thread.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "transport/segment.h"

namespace motley::transport {

class SharedArena {
 public:
  struct Place {
    std::uint32_t segment{};
    std::uint64_t offset{};
  };
  struct Key {
    std::shared_ptr<const Descriptor> file;
    std::uint64_t size{};  // of the segment
  };

  /// A lane that supports borrowing exists: take() allocates from now on.
  void want() { wanted_ = true; }
  [[nodiscard]] bool wanted() const { return wanted_; }

  /// Exactly that many bytes, page-aligned. Null before want(), and after an allocation failed, until the next want().
  void* take(std::size_t bytes);
  /// Whether `first` came from take().
  [[nodiscard]] bool owns(const void* first) const;
  /// Frees a block. A peer that has mapped it may go on reading.
  void give(void* first);

  /// The position of `memory`, if it lies within one block.
  [[nodiscard]] std::optional<Place> find(std::span<const std::byte> memory) const;
  [[nodiscard]] std::optional<Key> key(std::uint32_t segment) const;
  /// The number of blocks freed so far.
  [[nodiscard]] std::uint64_t released() const { return released_; }

  /// A lost peer may still read the segment: its block is freed on give() but never reused or overwritten.
  void spoil(std::uint32_t segment);
  [[nodiscard]] bool spoiled(const void* first) const;

 private:
  struct Block {
    std::uint32_t segment{};
    std::unique_ptr<Segment> memory;
    std::shared_ptr<const Descriptor> file;
    bool spoiled = false;
  };
  using Blocks = std::map<const std::byte*, Block>;  // by first byte

  [[nodiscard]] Blocks::const_iterator block_of(std::uint32_t segment) const;

  mutable std::mutex mutex_;
  Blocks blocks_;
  std::uint32_t next_segment_ = 0;
  std::atomic<bool> wanted_ = false;
  std::atomic<std::uint64_t> released_ = 0;
};

/// The arena of this process; never destroyed.
SharedArena& shared_arena();

}  // namespace motley::transport
