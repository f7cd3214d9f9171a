#include "codec/kernels.h"

namespace motley::codec {

std::string_view name_of(Target target) {
  switch (target) {
    case Target::plain: return "reference";
    case Target::avx2: return "avx2";
    case Target::avx512: return "avx512";
  }
  return "";
}

Target best_target() {
  static const Target best = targets().back();
  return best;
}

const Kernels& best_kernels() {
  static const Kernels& best = kernels_of(best_target());
  return best;
}

}  // namespace motley::codec
