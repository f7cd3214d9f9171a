#include "store/floats.h"

#include <sys/mman.h>

#include <cstdint>

namespace motley::store {
namespace {

constexpr std::size_t cache_line = 64;                   // bytes
constexpr std::size_t huge_page = std::size_t{2} << 20;  // bytes
constexpr std::size_t large = 2 * huge_page;             // below, rounding up to whole huge pages would waste too much

}  // namespace

void* allocate_aligned(std::size_t bytes) {
  if (bytes > PTRDIFF_MAX) throw std::bad_alloc();  // aligned_alloc would overflow
  const std::size_t unit = bytes >= large ? huge_page : cache_line;
  const std::size_t whole = (bytes + unit - 1) / unit * unit;
  void* memory = std::aligned_alloc(unit, whole > 0 ? whole : unit);
  if (memory == nullptr) throw std::bad_alloc();
  if (unit == huge_page) madvise(memory, whole, MADV_HUGEPAGE);  // a hint; without huge pages it changes nothing
  return memory;
}

}  // namespace motley::store
