// A worker's mathematics: samples at given values become a contribution. Strategies with local steps give it an optimizer of its own, which
// stays from round to round. The same code in both worlds, so that a simulated and a real worker send the same bits.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "store/gradient_source.h"
#include "store/optimizer.h"

namespace motley::store {

struct ReplicaOptions {
  OptimizerSpec optimizer;
  std::uint64_t values{};
  std::uint64_t parameters{};  // of the values; the rest are statistics
  bool local_steps = false;    // contributions are model deltas; workers run the optimizer themselves
  double local_momentum = 0.9;
};

/// What a contribution's worth is judged by.
struct Worth {
  Loss loss;
  double squared_norm = 0;  // over the parameters
  bool finite = true;
};

/// One owner thread.
class Replica {
 public:
  explicit Replica(const ReplicaOptions& options);

  /// What to do at which values (`values` floats; local steps move them along).
  struct Task {
    std::span<float> values;
    std::span<const std::uint32_t> samples;
    std::uint32_t local_steps = 1;
    double rate = 0;  // of local steps
  };
  /// The contribution of `task`, into `out` (as many values). With local steps the samples are dealt out to the steps in order, and `out`
  /// is the whole change. `flow` hears of single steps; local steps need and make everything at once.
  Worth contribute(GradientSource& source, const Task& task, std::span<float> out, Flow& flow);

 private:
  Loss run_local_steps(GradientSource& source, const Task& task, std::span<float> delta);
  [[nodiscard]] std::optional<Optimizer> fresh_optimizer() const;  // none without local steps

  ReplicaOptions options_;
  std::optional<Optimizer> optimizer_;
  std::vector<float> ahead_, gradient_;  // scratch of local steps
};

}  // namespace motley::store
