// How large the values of a contribution may be. A number that is finite can end a model as well as infinity does: a sum overflows, and so
// does a square. So servers take no value beyond 2^60 (its square, times all momentum, is well within a float), and a worker calls its own
// contribution not finite long before (any value of it, error feedback included, is smaller by far than a server's limit): an honest worker
// never sends what a server refuses. No training that still learns has gradients of either size.
#pragma once

namespace motley {

/// What a server takes: |x| < this, of each value.
inline constexpr float value_limit = 0x1p60F;

/// What a worker calls finite: a squared norm, and the square of each statistic, below this.
inline constexpr double squared_norm_limit = 0x1p100;

}  // namespace motley
