// A server's vector loops: a weighted sum of contributions fused with an update rule, and look-ahead. One pass reads contributions, weights
// and moments and writes weights and moments; the sum stays in registers. Each loop exists once (kernels_loops.h) and is compiled for
// several instruction sets; all leave the same bits.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/processor.h"

namespace motley::store {

/// One contribution of a weighted sum.
struct Addend {
  const float* values = nullptr;
  float weight = 0;
  const float* base = nullptr;                 // the weights it was computed on; null: unknown, it is not compensated
  const std::uint16_t* bf16_values = nullptr;  // its values as bf16, the upper 16 bits of floats; null: use `values`
};

/// Value i is the sum over the addends, in their order, of weight * values[i].
/// With a compensation lambda > 0 an addend with a base counts as weight * (g + clip(lambda*g*g*(w - base), |g|)), and the sum starts at 0.
/// Plain pointers instead of std::span: an inline library function compiled for one instruction set could be the copy that the linker keeps
/// for all.
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

/// Over n values each; w, v, m, u and out point to the first. Spans must not overlap, except that `out` may be `w`.
struct Kernels {
  /// w += g
  void (*add)(const Sum& g, std::size_t n, float* w);
  /// v = mu*v + (g + decay*w);  w -= rate*v
  void (*sgd)(const Sum& g, const SgdConstants& c, std::size_t n, float* w, float* v);
  /// sgd and sgd_look_ahead fused, out of place: v' = mu*v + (g + decay*w);  w' = w - rate*v';  out = w' - look_ahead_rate*v'. No
  /// compensation. `non_temporal`: stores w' and v' past the caches, if both have the same alignment within a vector; faster if they would
  /// be evicted before they are read again.
  void (*sgd_update_and_look_ahead)(const Sum& g, const SgdConstants& c, float look_ahead_rate, bool non_temporal, std::size_t n,
                                    const float* w, const float* v, float* w_after, float* v_after, float* out);
  /// w -= look_ahead_rate*g + decay*w
  void (*sgd_bypass)(const Sum& g, float look_ahead_rate, float decay, std::size_t n, float* w);
  /// m = beta1*m + (1-beta1)*g;  u = beta2*u + (1-beta2)*(g*g);  w -= rate*(d + decay*w), d = m*unbias1 / (sqrt(u*unbias2) + epsilon)
  void (*adamw)(const Sum& g, const AdamConstants& c, float rate, std::size_t n, float* w, float* m, float* u);
  /// w -= rate*(g / (sqrt(u*unbias2) + epsilon)) + decay*w
  void (*adam_bypass)(const Sum& g, const AdamConstants& c, float rate, float decay, std::size_t n, float* w, const float* u);
  /// out = w - look_ahead_rate*v: a stream triad
  void (*sgd_look_ahead)(float look_ahead_rate, std::size_t n, const float* w, const float* v, float* out);
  /// out = w - look_ahead_rate*d
  void (*adam_look_ahead)(const AdamConstants& c, float look_ahead_rate, std::size_t n, const float* w, const float* m, const float* u,
                          float* out);
};

/// For a target that this machine supports. The table never changes; any thread may use it.
[[nodiscard]] const Kernels& kernels_for(Target target);

}  // namespace motley::store
