// Arrays of floats aligned for vector loops: they begin at a cache line, so that no vector straddles two, and large ones lie in huge pages
// where available. Alignment as malloc gives it costs up to a quarter of the loops' speed.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

namespace motley::store {

/// Uninitialised memory aligned to a cache line, from 4 MiB on to a huge page. Freed by std::free(). Throws std::bad_alloc.
[[nodiscard]] void* allocate_aligned(std::size_t bytes);

/// Allocator for standard containers.
template <class T>
struct CacheAligned {
  using value_type = T;
  CacheAligned() = default;
  template <class U>
  CacheAligned(const CacheAligned<U>&) {}  // NOLINT(google-explicit-constructor): required of allocators
  [[nodiscard]] T* allocate(std::size_t count) { return static_cast<T*>(allocate_aligned(count * sizeof(T))); }
  void deallocate(T* memory, std::size_t) { std::free(memory); }  // NOLINT(cppcoreguidelines-no-malloc,cppcoreguidelines-owning-memory)
  bool operator==(const CacheAligned&) const { return true; }
};

using Floats = std::vector<float, CacheAligned<float>>;

}  // namespace motley::store
