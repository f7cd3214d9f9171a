// For processors other than x86: the reference loops only. Chosen by module.cmake.
#include "base/check.h"
#include "codec/kernels.h"

namespace motley::codec {

std::vector<Target> targets() { return {Target::plain}; }

const Kernels& kernels_of(Target target) {
  check(target == Target::plain, "only targets that this processor can run are asked for");
  return reference_kernels;
}

}  // namespace motley::codec
