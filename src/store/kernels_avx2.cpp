// The loops for AVX2; module.cmake sets the compiler flags. On other architectures the file compiles without them and is never chosen.
#include "store/kernels_loops.h"
#include "store/kernels_targets.h"

namespace motley::store {

const Kernels avx2_kernels = Loops<8>::table;

}  // namespace motley::store
