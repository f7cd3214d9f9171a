// Which of the x86 targets the processor (and the system, which must save the wide registers) can run. Chosen by room.cmake.
#include "codec/x86/targets.h"

#include <algorithm>

#include "base/check.h"

namespace motley::codec {

std::vector<Target> targets() {
  std::vector<Target> found{Target::reference};
  if (__builtin_cpu_supports("avx2")) found.push_back(Target::avx2);
  if (__builtin_cpu_supports("avx512f")) found.push_back(Target::avx512);
  return found;
}

const Kernels& kernels_of(Target target) {
  const std::vector<Target> found = targets();
  check(std::find(found.begin(), found.end(), target) != found.end(), "only targets that this processor can run are asked for");
  switch (target) {
    case Target::reference: break;
    case Target::avx2: return avx2_kernels;
    case Target::avx512: return avx512_kernels;
  }
  return reference_kernels;
}

}  // namespace motley::codec
