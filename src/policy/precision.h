// Precisions: how many bits a value takes on the wire, each way. `fixed`: always the same.
#pragma once
#include "base/ids.h"
#include "policy/spec.h"

namespace motley::policy {

class Precision {
 public:
  explicit Precision(Bits bits = {}) : bits_(bits) {}
  [[nodiscard]] Bits bits(WorkerId) const { return bits_; }

 private:
  Bits bits_;
};

}  // namespace motley::policy
