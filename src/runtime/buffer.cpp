#include "runtime/buffer.h"

#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include "runtime/constants.h"
#include "store/floats.h"
#include "transport/shared_arena.h"

namespace motley::runtime {
namespace {

/// Recycles the memory of large buffers, a few of each size.
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
      if (idle.size() < (shareable ? max_idle_shared_buffers : max_idle_buffers) && (!shareable || usable(memory))) {
        idle.push_back(memory);
        return;
      }
    }
    free(memory);
  }

 private:
  /// Not memory that a lost peer may still read, and not private memory once there are peers to share with.
  static bool usable(void* memory) {
    const transport::SharedArena& arena = transport::shared_arena();
    return arena.owns(memory) ? !arena.spoiled(memory) : !arena.wanted();
  }
  static void free(void* memory) {
    if (transport::shared_arena().owns(memory))
      transport::shared_arena().give(memory);
    else
      std::free(memory);
  }

  std::mutex mutex_;
  std::map<std::pair<std::size_t, bool>, std::vector<void*>> idle_;  // by bytes and whether it is shareable
};

/// Never destroyed: threads may hold buffers until the process ends.
Pool& pool() {
  static Pool& only = *new Pool();  // NOLINT(cppcoreguidelines-owning-memory)
  return only;
}

}  // namespace

bool shareable(std::size_t values) { return values * sizeof(float) >= pooled_bytes && transport::shared_arena().wanted(); }

Buffer::Buffer(std::size_t values, bool shareable) : count_(values), shareable_(shareable) {
  const std::size_t bytes = values * sizeof(float);
  void* memory = bytes >= pooled_bytes ? pool().take(bytes, shareable) : std::malloc(bytes > 0 ? bytes : 1);
  if (memory == nullptr) throw std::bad_alloc();
  floats_ = static_cast<float*>(memory);
}

Buffer::~Buffer() {
  if (borrowed_) return;
  const std::size_t bytes = count_ * sizeof(float);
  if (bytes >= pooled_bytes)
    pool().give(floats_, bytes, shareable_);
  else
    std::free(floats_);
}

}  // namespace motley::runtime
