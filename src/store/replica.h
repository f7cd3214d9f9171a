// Computes a worker's contributions: the mean gradient over samples at given values or, with local steps, the delta of a local model that
// persists from round to round (store/local_model.h). Simulated and real workers run this same code, so they send the same bits.
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
  bool splits_on_out_of_memory = true;  // a step that does not fit into memory is computed in pieces; else OutOfMemory is passed on
};

/// Divides a step into pieces; implementations may look at a clock.
class MicroBatcher {
 public:
  virtual ~MicroBatcher() = default;
  struct Piece {
    std::uint64_t samples = 0;  // at least 1, at most `left`
    bool last = true;           // the step ends with it, even if samples are left
  };
  /// The next piece, after `done` samples; `left` (at least 1) are not computed yet.
  virtual Piece next(std::uint64_t done, std::uint64_t left) = 0;
};

/// The whole step is one piece.
class SingleBatch final : public MicroBatcher {
 public:
  Piece next(std::uint64_t, std::uint64_t left) override { return {left, true}; }
};

/// One owner thread.
class Replica {
 public:
  explicit Replica(const ReplicaOptions& options);

  struct Task {
    std::span<const float> values;
    std::span<const std::uint32_t> samples;
  };
  /// The mean gradient over `samples` at `values`, into `out` (as many values). `io` is told which values are needed and which gradients
  /// are ready. `batcher` may divide the step and end it early: `out` is the mean over the computed samples. A piece that does not fit into
  /// memory is halved, and so are all later ones, unless the options forbid it. The report has no times, and a residual only if `out` is
  /// coded.
  StepReport contribute(GradientSource& source, const Task& task, std::span<float> out, StepIo& io, MicroBatcher& batcher);
  StepReport contribute(GradientSource& source, const Task& task, std::span<float> out, StepIo& io) {
    SingleBatch single_batch;
    return contribute(source, task, out, io, single_batch);
  }
  /// With local steps: writes the delta of this round to `out`. All values are needed at its start and all are ready at its end;
  /// OutOfMemory is passed on.
  StepReport contribute(GradientSource& source, const LocalRound& round, IncomingUpdates& incoming, std::span<float> out, StepIo& io);
  [[nodiscard]] bool local_steps() const { return local_.has_value(); }
  /// The last round was discarded, or the worker is a new member: the next round begins at the global values.
  void start_over() {
    if (local_) local_->forget();
  }

 private:
  class Mean;
  StepResult run_in_pieces(GradientSource& source, const Task& task, std::span<float> out, StepIo& io, MicroBatcher& batcher,
                           StepReport& report);
  void measure(std::span<const float> out, const StepResult& loss, StepReport& report) const;

  ReplicaOptions options_;
  std::optional<LocalModel> local_;
  std::uint32_t max_batch_ = 0;  // of one piece; 0: no limit is known
  std::vector<float> gradient_;  // scratch of pieces
};

}  // namespace motley::store
