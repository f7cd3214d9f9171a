// The vector extensions of this machine's processor. One binary serves different machines: loops choose a variant at run time, and their
// results do not depend on it.
#pragma once
#include <cstdint>

namespace motley {

/// Ascending: each includes the ones before it. `plain` is what every processor has (SSE2 on x86-64).
enum class Target : std::uint8_t { plain, avx2, avx512 };

/// The widest target that processor and operating system support.
[[nodiscard]] Target widest_target();

}  // namespace motley
