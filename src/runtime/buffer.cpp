#include "runtime/buffer.h"

#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include "store/floats.h"
#include "transport/shared_arena.h"

namespace motley::runtime {
namespace {

constexpr std::size_t large = std::size_t{4} << 20;  // bytes; malloc keeps smaller ones by itself
constexpr std::size_t most_idle = 4;                 // of a size: what a step takes and gives back
constexpr std::size_t max_idle_shared = 16;          // of what peers have mapped, and pinned for their GPUs: a new one costs them more

/// Memory of large buffers that are gone, a few of each size.
class Pool {
 public:
  void* take(std::size_t bytes, bool shareable) {
    {
      const std::lock_guard lock(mutex_);
      for (auto& idle = idle_[{bytes, shareable}]; !idle.empty();) {
        void* memory = idle.back();
        idle.pop_back();
        if (!shareable || usable(memory)) return memory;
        free(memory);
      }
    }
    if (void* shared = shareable ? transport::shared_arena().take(bytes) : nullptr; shared != nullptr) return shared;
    return store::allocate_aligned(bytes);
  }
  void give(void* memory, std::size_t bytes, bool shareable) {
    {
      const std::lock_guard lock(mutex_);
      auto& idle = idle_[{bytes, shareable}];
      if (idle.size() < (shareable ? max_idle_shared : most_idle) && (!shareable || usable(memory))) {
        idle.push_back(memory);
        return;
      }
    }
    free(memory);
  }

 private:
  /// Not what somebody who is lost may be reading; nor what cannot be lent, once there is somebody to lend to.
  static bool usable(void* memory) {
    const transport::SharedArena& borrowed = transport::shared_arena();
    return borrowed.owns(memory) ? !borrowed.spoiled(memory) : !borrowed.wanted();
  }
  static void free(void* memory) {
    if (transport::shared_arena().owns(memory))
      transport::shared_arena().give(memory);
    else
      std::free(memory);
  }

  std::mutex mutex_;
  std::map<std::pair<std::size_t, bool>, std::vector<void*>> idle_;  // by bytes and whether it may be lent
};

/// Outlives every buffer, also those that threads hold at the end.
Pool& pool() {
  static Pool& only = *new Pool();  // NOLINT(cppcoreguidelines-owning-memory)
  return only;
}

}  // namespace

bool shareable(std::size_t values) { return values * sizeof(float) >= large && transport::shared_arena().wanted(); }

Buffer::Buffer(std::size_t values, bool shareable) : count_(values), shareable_(shareable) {
  const std::size_t bytes = values * sizeof(float);
  void* memory = bytes >= large ? pool().take(bytes, shareable) : std::malloc(bytes > 0 ? bytes : 1);
  if (memory == nullptr) throw std::bad_alloc();
  floats_ = static_cast<float*>(memory);
}

Buffer::~Buffer() {
  if (borrowed_) return;
  const std::size_t bytes = count_ * sizeof(float);
  if (bytes >= large)
    pool().give(floats_, bytes, shareable_);
  else
    std::free(floats_);
}

}  // namespace motley::runtime
