// The loops for avx512; module.cmake has this file compiled for it. Elsewhere it is compiled as any other and never chosen.
#include "store/kernels_loops.h"
#include "store/kernels_targets.h"

namespace motley::store {

const Kernels avx512_kernels = Loops<16>::table;

}  // namespace motley::store
