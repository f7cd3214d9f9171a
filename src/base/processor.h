// What this machine's processor offers to loops that come in several widths. One binary serves unlike machines: the choice is made while
// it runs, and what a loop computes never depends on it.
#pragma once
#include <cstdint>

namespace motley {

/// Ascending: who has one has those before it. `plain` is what every processor has (on x86-64 that is SSE2).
enum class Target : std::uint8_t { plain, avx2, avx512 };

/// The widest that processor and operating system offer here.
[[nodiscard]] Target widest_target();

}  // namespace motley
