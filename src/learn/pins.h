// Pins memory of the host, so that GPUs copy from and to it by themselves while the CPU does other work. Any thread.
#pragma once
#include <cstddef>
#include <span>

namespace motley::learn {

/// Makes `gpu` the calling thread's GPU. Best effort: without a GPU, or when its driver refuses, nothing is pinned and copies go through
/// staging memory.
void pin(std::span<std::byte> memory, int gpu);
/// Call before the memory is freed. No effect on memory that is not pinned.
void unpin(std::span<std::byte> memory);
/// True if all of `memory` lies within one range that was pinned.
[[nodiscard]] bool is_pinned(std::span<const std::byte> memory);

}  // namespace motley::learn
