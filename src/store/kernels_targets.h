// One table of loops per instruction set.
#pragma once
#include "store/kernels.h"

namespace motley::store {

extern const Kernels plain_kernels, avx2_kernels, avx512_kernels;

}  // namespace motley::store
