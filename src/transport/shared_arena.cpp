#include "transport/shared_arena.h"

#include <algorithm>

#include "base/check.h"
#include "transport/memory_watch.h"

namespace motley::transport {

void* SharedArena::take(std::size_t bytes) {
  if (!wanted_) return nullptr;
  Result<SharedSegment> made = make_segment(bytes);  // outside the lock, because a large one takes long
  if (!made.ok()) {
    wanted_ = false;
    return nullptr;
  }
  std::unique_ptr<Segment> memory = watched(std::move(made->memory));
  std::byte* first = memory->bytes().data();
  const std::lock_guard lock(mutex_);
  blocks_[first] = {next_segment_++, std::move(memory), std::move(made->file)};
  return first;
}

bool SharedArena::owns(const void* first) const {
  const std::lock_guard lock(mutex_);
  return blocks_.contains(static_cast<const std::byte*>(first));
}

void SharedArena::give(void* first) {
  Blocks::node_type removed;  // destroyed after the lock is released, because the memory watch may take long
  const std::lock_guard lock(mutex_);
  removed = blocks_.extract(static_cast<const std::byte*>(first));
  check(!removed.empty(), "only a block of take() is given back");
  ++released_;
}

std::optional<SharedArena::Place> SharedArena::find(std::span<const std::byte> memory) const {
  const std::lock_guard lock(mutex_);
  auto after = blocks_.upper_bound(memory.data());
  if (after == blocks_.begin()) return std::nullopt;
  const auto& [first, block] = *--after;
  const auto offset = static_cast<std::uint64_t>(memory.data() - first);
  if (offset + memory.size() > block.memory->bytes().size()) return std::nullopt;
  return Place{block.segment, offset};
}

SharedArena::Blocks::const_iterator SharedArena::block_of(std::uint32_t segment) const {
  return std::find_if(blocks_.begin(), blocks_.end(), [&](const auto& block) { return block.second.segment == segment; });
}

std::optional<SharedArena::Key> SharedArena::key(std::uint32_t segment) const {
  const std::lock_guard lock(mutex_);
  const auto found = block_of(segment);
  if (found == blocks_.end()) return std::nullopt;
  return Key{found->second.file, found->second.memory->bytes().size()};
}

void SharedArena::spoil(std::uint32_t segment) {
  const std::lock_guard lock(mutex_);
  if (const auto found = block_of(segment); found != blocks_.end()) blocks_.at(found->first).spoiled = true;
}

bool SharedArena::spoiled(const void* first) const {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(static_cast<const std::byte*>(first));
  return found != blocks_.end() && found->second.spoiled;
}

SharedArena& shared_arena() {
  static SharedArena& only = *new SharedArena();  // NOLINT(cppcoreguidelines-owning-memory)
  return only;
}

}  // namespace motley::transport
