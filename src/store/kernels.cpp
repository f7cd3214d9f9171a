#include "store/kernels.h"

#include "store/kernels_targets.h"

namespace motley::store {

const Kernels& kernels_for(Target target) {
  switch (target) {
    case Target::avx512: return avx512_kernels;
    case Target::avx2: return avx2_kernels;
    case Target::plain: break;
  }
  return plain_kernels;
}

}  // namespace motley::store
