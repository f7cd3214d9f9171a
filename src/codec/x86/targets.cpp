// The x86 targets that the processor can run. Chosen by module.cmake.
#include "codec/x86/targets.h"

#include "base/check.h"

namespace motley::codec {

std::vector<Target> targets() {
  std::vector<Target> found;
  for (const Target target : {Target::plain, Target::avx2, Target::avx512})
    if (target <= widest_target()) found.push_back(target);
  return found;
}

const Kernels& kernels_of(Target target) {
  check(target <= widest_target(), "only targets that this processor can run are asked for");
  switch (target) {
    case Target::plain: break;
    case Target::avx2: return avx2_kernels;
    case Target::avx512: return avx512_kernels;
  }
  return reference_kernels;
}

}  // namespace motley::codec
