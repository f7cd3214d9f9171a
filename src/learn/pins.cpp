#include "learn/pins.h"

#include <dlfcn.h>

#include <map>
#include <mutex>

namespace motley::learn {
namespace {

// CUDA's runtime, if torch has loaded it into this process. Found by name, so that builds need no CUDA headers.
using Register = int (*)(void*, std::size_t, unsigned);
using Unregister = int (*)(void*);
using Choose = int (*)(int);
using LastError = int (*)();
constexpr unsigned portable = 1;  // cudaHostRegisterPortable

template <class Call>
Call find(const char* name) {
  return reinterpret_cast<Call>(dlsym(RTLD_DEFAULT, name));
}

std::mutex mutex;                                // NOLINT(cert-err58-cpp): it does not throw
std::map<const std::byte*, std::size_t> pinned;  // address to bytes

}  // namespace

void pin(std::span<std::byte> memory, int gpu) {
  static const auto choose = find<Choose>("cudaSetDevice");
  static const auto call = find<Register>("cudaHostRegister");
  static const auto forget_error = find<LastError>("cudaGetLastError");
  if (choose == nullptr || call == nullptr || forget_error == nullptr) return;
  if (choose(gpu) != 0 || call(memory.data(), memory.size(), portable) != 0) {
    static_cast<void>(forget_error());  // clears CUDA's sticky error, which torch would report
    return;
  }
  const std::lock_guard lock(mutex);
  pinned[memory.data()] = memory.size();
}

void unpin(std::span<std::byte> memory) {
  static const auto call = find<Unregister>("cudaHostUnregister");
  {
    const std::lock_guard lock(mutex);
    if (pinned.erase(memory.data()) == 0) return;
  }
  call(memory.data());
}

bool is_pinned(std::span<const std::byte> memory) {
  const std::lock_guard lock(mutex);
  auto after = pinned.upper_bound(memory.data());
  if (after == pinned.begin()) return false;
  --after;
  return memory.data() + memory.size() <= after->first + after->second;
}

}  // namespace motley::learn
