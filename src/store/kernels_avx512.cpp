// The loops for AVX-512; module.cmake sets the compiler flags. On other architectures the file compiles without them and is never chosen.
#include "store/kernels_loops.h"
#include "store/kernels_targets.h"

namespace motley::store {

const Kernels avx512_kernels = Loops<16>::table;

}  // namespace motley::store
