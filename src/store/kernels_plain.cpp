// The loops for every processor: four values at a time, SSE2 on x86-64, NEON on arm.
#include "store/kernels_loops.h"
#include "store/kernels_targets.h"

namespace motley::store {

const Kernels plain_kernels = Loops<4>::table;

}  // namespace motley::store
