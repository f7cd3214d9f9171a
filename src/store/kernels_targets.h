// One table of loops for each processor that there is a file for.
#pragma once
#include "store/kernels.h"

namespace motley::store {

extern const Kernels plain_kernels, avx2_kernels, avx512_kernels;

}  // namespace motley::store
