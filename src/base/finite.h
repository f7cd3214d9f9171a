// Limits on the values of a contribution. A finite value can destroy a model as infinity does, because sums and squares overflow. Servers
// refuse values from 2^60 on (the square, with all momentum, is far below the largest float).
// A worker treats its own contribution as not finite at a much lower limit (every value of it, error feedback included, is far below a
// server's limit), so a correct worker never sends a value that a server refuses. Gradients of useful training are far below both.
#pragma once

namespace motley {

/// Servers accept |x| < this for each value.
inline constexpr float value_limit = 0x1p60F;

/// Workers accept a squared norm, and squares of statistics, below this.
inline constexpr double squared_norm_limit = 0x1p100;

}  // namespace motley
