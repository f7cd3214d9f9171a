// Memory of the host that GPUs copy from and to by themselves, while the processor does something else. Any thread.
#pragma once
#include <cstddef>
#include <span>

namespace motley::learn {

/// For the GPU of this number, which the calling thread uses from then on. Best effort: without a GPU, or when its driver refuses, nothing
/// is pinned and copies take the longer way.
void pin(std::span<std::byte> memory, int gpu);
/// Before the memory goes. What was not pinned needs no unpinning.
void unpin(std::span<std::byte> memory);
/// All of it, within one stretch that was pinned.
[[nodiscard]] bool is_pinned(std::span<const std::byte> memory);

}  // namespace motley::learn
