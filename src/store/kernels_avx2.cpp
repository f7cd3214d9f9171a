// The loops for avx2; module.cmake has this file compiled for it. Elsewhere it is compiled as any other and never chosen.
#include "store/kernels_loops.h"
#include "store/kernels_targets.h"

namespace motley::store {

const Kernels avx2_kernels = Loops<8>::table;

}  // namespace motley::store
