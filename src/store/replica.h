// A worker's mathematics: samples at given values become a contribution. Strategies with local steps give it a model of its own, which
// stays from round to round (store/local_model.h). The same code in both worlds, so that a simulated and a real worker send the same bits.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/gradient_source.h"
#include "base/step_report.h"
#include "store/local_model.h"
#include "store/optimizer.h"

namespace motley::store {

struct ReplicaOptions {
  OptimizerSpec optimizer;
  std::uint64_t values{};
  std::uint64_t parameters{};  // of the values; the rest are statistics
  bool local_steps = false;    // contributions are model deltas; workers run the optimizer themselves
  double local_momentum = 0.9;
  bool tracks_updates = false;  // see LocalModelOptions
  bool control_variate = false;
  bool splits_on_out_of_memory = true;  // a step that does not fit into memory is done in pieces; else OutOfMemory passes through
};

/// How a step is cut into pieces, by somebody with a clock.
class MicroBatcher {
 public:
  virtual ~MicroBatcher() = default;
  struct Piece {
    std::uint64_t samples = 0;  // at least 1, at most `left`
    bool last = true;           // the step ends with it, whatever is left
  };
  /// The next piece, when `done` samples are done and `left` (at least 1) are not.
  virtual Piece next(std::uint64_t done, std::uint64_t left) = 0;
};

/// All of it at once.
class SingleBatch final : public MicroBatcher {
 public:
  Piece next(std::uint64_t, std::uint64_t left) override { return {left, true}; }
};

/// One owner thread.
class Replica {
 public:
  explicit Replica(const ReplicaOptions& options);

  /// The mean gradient over `samples` at `values`, into `out` (as many values). `io` hears of what is needed and made. `batcher` may cut
  /// the step into pieces and end it early: `out` is the mean over the samples that were done. A piece that does not fit into memory is cut
  /// in two, and so are all after it, unless the options forbid it. The report has no times, and a residual only when `out` is coded.
  struct Task {
    std::span<const float> values;
    std::span<const std::uint32_t> samples;
  };
  StepReport contribute(GradientSource& source, const Task& task, std::span<float> out, StepIo& io, MicroBatcher& batcher);
  StepReport contribute(GradientSource& source, const Task& task, std::span<float> out, StepIo& io) {
    SingleBatch single_batch;
    return contribute(source, task, out, io, single_batch);
  }
  /// With local steps: the way that the local model goes in this round, into `out`. It needs and makes everything at once; OutOfMemory
  /// passes through.
  StepReport contribute(GradientSource& source, const LocalRound& round, IncomingUpdates& incoming, std::span<float> out, StepIo& io);
  [[nodiscard]] bool local_steps() const { return local_.has_value(); }
  /// The last round counts for nothing, or it works for a new member now: the next round begins at the global values.
  void start_over() {
    if (local_) local_->forget();
  }

 private:
  class Mean;
  StepResult run_in_pieces(GradientSource& source, const Task& task, std::span<float> out, StepIo& io, MicroBatcher& batcher, StepReport& report);
  void measure(std::span<const float> out, const StepResult& loss, StepReport& report) const;

  ReplicaOptions options_;
  std::optional<LocalModel> local_;
  std::uint32_t max_batch_ = 0;  // of one piece; 0: no limit is known
  std::vector<float> gradient_;  // scratch of pieces
};

}  // namespace motley::store
