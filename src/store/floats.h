// Arrays of numbers that loops go over from one end to the other: they begin with a cache line, so that no vector of a loop lies across
// two, and large ones lie in huge pages where there are such. Where malloc happens to put them is worth a quarter of the speed.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

namespace motley::store {

/// Memory that begins with a cache line, of 4 MiB or more with a huge page, untouched. Given back by std::free(). Throws std::bad_alloc.
[[nodiscard]] void* allocate_aligned(std::size_t bytes);

/// For containers of the standard library.
template <class T>
struct CacheAligned {
  using value_type = T;
  CacheAligned() = default;
  template <class U>
  CacheAligned(const CacheAligned<U>&) {}  // NOLINT(google-explicit-constructor): as the standard has it
  [[nodiscard]] T* allocate(std::size_t count) { return static_cast<T*>(allocate_aligned(count * sizeof(T))); }
  void deallocate(T* memory, std::size_t) { std::free(memory); }  // NOLINT(cppcoreguidelines-no-malloc,cppcoreguidelines-owning-memory)
  bool operator==(const CacheAligned&) const { return true; }
};

using Floats = std::vector<float, CacheAligned<float>>;

}  // namespace motley::store
