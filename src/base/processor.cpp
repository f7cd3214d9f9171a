#include "base/processor.h"

namespace motley {

Target widest_target() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl"))
    return Target::avx512;
  if (__builtin_cpu_supports("avx2")) return Target::avx2;
#endif
  return Target::plain;
}

}  // namespace motley
