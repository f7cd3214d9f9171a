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
  bool cuts_to_fit = true;  // a step that does not fit into memory is done in pieces; else OutOfMemory passes through
};

/// What a contribution's worth is judged by.
struct Worth {
  Loss loss;
  double squared_norm = 0;  // over the parameters
  bool finite = true;
  std::uint64_t samples = 0;       // that were done; fewer than all when a pace said so
  std::uint32_t most_samples = 0;  // memory turned out not to hold more at once; 0: no such thing
};

/// How a step is cut into pieces, by somebody with a clock.
class Pace {
 public:
  virtual ~Pace() = default;
  struct Piece {
    std::uint64_t samples = 0;  // at least 1, at most `left`
    bool last = true;           // the step ends with it, whatever is left
  };
  /// The next piece, when `done` samples are done and `left` (at least 1) are not.
  virtual Piece next(std::uint64_t done, std::uint64_t left) = 0;
};

/// All of it at once.
class AtOnce final : public Pace {
 public:
  Piece next(std::uint64_t, std::uint64_t left) override { return {left, true}; }
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
  /// is the whole change. `flow` hears of single steps; local steps need and make everything at once. `pace` may cut single steps into
  /// pieces and end them early: `out` is the mean over the samples that were done.
  /// A piece that does not fit into memory is cut in two, and so are all after it, unless the options forbid it; with local steps
  /// OutOfMemory is thrown.
  Worth contribute(GradientSource& source, const Task& task, std::span<float> out, Flow& flow, Pace& pace);
  Worth contribute(GradientSource& source, const Task& task, std::span<float> out, Flow& flow) {
    AtOnce at_once;
    return contribute(source, task, out, flow, at_once);
  }

 private:
  class Mean;
  void run_in_pieces(GradientSource& source, const Task& task, std::span<float> out, Flow& flow, Pace& pace, Worth& worth);
  Loss run_local_steps(GradientSource& source, const Task& task, std::span<float> delta);
  [[nodiscard]] std::optional<Optimizer> fresh_optimizer() const;  // none without local steps

  ReplicaOptions options_;
  std::optional<Optimizer> optimizer_;
  std::uint32_t most_samples_ = 0;       // of one piece; 0: no limit is known
  std::vector<float> ahead_, gradient_;  // scratch of local steps and of pieces
};

}  // namespace motley::store
