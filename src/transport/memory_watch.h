// Reports shared memory segments to a GPU driver: a GPU can copy directly only from and to memory that was registered (pinned) before.
#pragma once
#include <functional>
#include <memory>
#include <span>

#include "transport/segment.h"

namespace motley::transport {

/// Both functions are called on any thread; for each segment in this order.
struct MemoryWatch {
  std::function<void(std::span<std::byte>)> mapped = [](std::span<std::byte>) {};
  std::function<void(std::span<std::byte>)> unmapping = [](std::span<std::byte>) {};
};

/// Applies to segments mapped from now on, not to those mapped before.
void watch_memory(MemoryWatch watch);

/// The same segment; the watcher is called now and when the segment is destroyed.
[[nodiscard]] std::unique_ptr<Segment> watched(std::unique_ptr<Segment> segment);

}  // namespace motley::transport
