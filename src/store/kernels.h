// The loops of a server over its values: a weighted sum of contributions that goes straight into an update rule, and looking ahead.
// One pass: contributions, weights and moments are read, weights and moments written, and the sum never leaves the registers.
// Each loop exists once (kernels_loops.h) and is compiled for several processors; all of them leave the same bits.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/processor.h"

namespace motley::store {

/// One contribution of a weighted sum.
struct Addend {
  const float* values = nullptr;
  float weight = 0;
  const float* base = nullptr;                 // the weights it was computed on; null: not known, it counts as it is
  const std::uint16_t* bf16_values = nullptr;  // its values as numbers of 16 bits, the upper halves of floats; null: `values` has them
};

/// Value i is the sum over the addends, in their order, of weight * values[i].
/// With a compensation lambda > 0 an addend that has a base counts as weight * (g + clip(lambda*g*g*(w - base), |g|)), and the sum begins
/// with 0. Plain pointers and no std::span here and below: an inline function of the library that is compiled for one processor could be
/// the one that the linker keeps for all.
struct Sum {
  const Addend* addends = nullptr;
  std::size_t count = 0;  // >= 1
  float compensation = 0;
};

struct SgdConstants {
  float rate, mu, decay;
};
struct AdamConstants {
  float beta1, beta2, from_gradient1, from_gradient2, unbias1, unbias2, epsilon, decay;
};

/// Over n values each; w, v, m, u, out begin at the first of them. Spans must not overlap, except that `out` may be `w`.
struct Kernels {
  /// w += g
  void (*add)(const Sum& g, std::size_t n, float* w);
  /// v = mu*v + (g + decay*w);  w -= rate*v
  void (*sgd)(const Sum& g, const SgdConstants& c, std::size_t n, float* w, float* v);
  /// sgd and sgd_look_ahead in one, from one place to another: v' = mu*v + (g + decay*w);  w' = w - rate*v';  out = w' - reach*v'. No
  /// compensation. `non_temporal`: what is written to w' and v' would be in no cache any more when it is read again, and goes past them
  /// where both begin at the same place within a vector, as in two arrays that begin with a cache line.
  void (*sgd_update_and_look_ahead)(const Sum& g, const SgdConstants& c, float look_ahead_rate, bool non_temporal, std::size_t n,
                                    const float* w, const float* v, float* w_after, float* v_after, float* out);
  /// w -= reach*g + decay*w
  void (*sgd_bypass)(const Sum& g, float look_ahead_rate, float decay, std::size_t n, float* w);
  /// m = beta1*m + (1-beta1)*g;  u = beta2*u + (1-beta2)*(g*g);  w -= rate*(d + decay*w), d = m*unbias1 / (sqrt(u*unbias2) + epsilon)
  void (*adamw)(const Sum& g, const AdamConstants& c, float rate, std::size_t n, float* w, float* m, float* u);
  /// w -= rate*(g / (sqrt(u*unbias2) + epsilon)) + decay*w
  void (*adam_bypass)(const Sum& g, const AdamConstants& c, float rate, float decay, std::size_t n, float* w, const float* u);
  /// out = w - reach*v: a stream triad
  void (*sgd_look_ahead)(float look_ahead_rate, std::size_t n, const float* w, const float* v, float* out);
  /// out = w - reach*d
  void (*adam_look_ahead)(const AdamConstants& c, float look_ahead_rate, std::size_t n, const float* w, const float* m, const float* u,
                          float* out);
};

/// For a target that this machine has. The reference to a table that never changes: any thread.
[[nodiscard]] const Kernels& kernels_for(Target target);

}  // namespace motley::store
