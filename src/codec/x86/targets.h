// The tables of the x86 targets, one file each.
#pragma once
#include "codec/kernels.h"

namespace motley::codec {

extern const Kernels avx2_kernels;
extern const Kernels avx512_kernels;

}  // namespace motley::codec
