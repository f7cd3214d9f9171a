// Memory of this process that its peers on this host may read where it lies, instead of being sent what it holds. It is taken in large
// blocks, each a segment (segment.h) with a number of its own; a lane that is to send a part of one names the segment and the place
// (shared_bulk.h). Any thread.
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

  /// A lane that can lend is there: from now on take() gives something.
  void want() { wanted_ = true; }
  [[nodiscard]] bool wanted() const { return wanted_; }

  /// Exactly so many bytes, at the beginning of a page. Null before want(), and where no memory can be shared: then until the next want().
  void* take(std::size_t bytes);
  /// Whether this block came from take().
  [[nodiscard]] bool owns(const void* first) const;
  /// Whoever has mapped the block may go on reading.
  void give(void* first);

  /// Where it lies, if it lies in one block.
  [[nodiscard]] std::optional<Place> find(std::span<const std::byte> memory) const;
  [[nodiscard]] std::optional<Key> key(std::uint32_t segment) const;
  /// Blocks that were given back so far.
  [[nodiscard]] std::uint64_t released() const { return released_; }

  /// Somebody was lost who may be reading in it still: its content must stay, so it is given back and never used again.
  void spoil(std::uint32_t segment);
  [[nodiscard]] bool spoiled(const void* first) const;

 private:
  struct Block {
    std::uint32_t segment{};
    std::unique_ptr<Segment> memory;
    std::shared_ptr<const Descriptor> file;
    bool spoiled = false;
  };
  using Blocks = std::map<const std::byte*, Block>;  // by where they begin

  [[nodiscard]] Blocks::const_iterator block_of(std::uint32_t segment) const;

  mutable std::mutex mutex_;
  Blocks blocks_;
  std::uint32_t next_segment_ = 0;
  std::atomic<bool> wanted_ = false;
  std::atomic<std::uint64_t> released_ = 0;
};

/// Of this process; outlives everything.
SharedArena& shared_arena();

}  // namespace motley::transport
