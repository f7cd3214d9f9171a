// For whoever must know which memory is lent and borrowed before it is used, and before it goes: a GPU copies by itself only from and to
// memory that it was told of.
#pragma once
#include <functional>
#include <memory>
#include <span>

#include "transport/segment.h"

namespace motley::transport {

/// Both are called on any thread, and for each segment in this order.
struct MemoryWatch {
  std::function<void(std::span<std::byte>)> mapped = [](std::span<std::byte>) {};
  std::function<void(std::span<std::byte>)> unmapping = [](std::span<std::byte>) {};
};

/// From now on; for what is mapped already, never.
void watch_memory(MemoryWatch watch);

/// The same segment, told to whoever watches, now and when it goes.
[[nodiscard]] std::unique_ptr<Segment> watched(std::unique_ptr<Segment> segment);

}  // namespace motley::transport
