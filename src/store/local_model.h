// Local SGD: the model that a worker updates by itself for several steps per round. Its contribution is the model delta of the round. Newer
// global values are merged when they arrive, also during a round and slice by slice.
//
//   l = w - a, the delta since the start a of this round;   newer values z without it:   w = z + (1 - alpha)*l;  a = w - l;  v *= 1 - alpha
// The correction alpha keeps local models close to the global one: alpha = 1 drops the delta from the local model, alpha = 0 lets models
// drift apart. The contribution contains all of l in any case, so z contains it one round later. Global values that already contain this
// worker's last delta replace the model, and the momentum stays: synchronous local SGD is this case.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/gradient_source.h"
#include "base/ids.h"
#include "store/floats.h"
#include "store/optimizer.h"

namespace motley::store {

/// Newer global values that arrive during a round.
class IncomingUpdates {
 public:
  virtual ~IncomingUpdates() = default;
  struct Piece {
    std::uint64_t first = 0;  // place in the flat buffer
    std::span<const float> values;
  };
  /// The values that have arrived since the last call, after `done` steps of the round. Valid until the next call.
  virtual std::span<const Piece> since(std::uint32_t done) = 0;
};

class NoIncomingUpdates final : public IncomingUpdates {
 public:
  std::span<const Piece> since(std::uint32_t) override { return {}; }
};

struct LocalModelOptions {
  OptimizerSpec optimizer;
  std::uint64_t values{};
  std::uint64_t parameters{};  // the first ones of the values; the rest are statistics, to which alpha does not apply
  double momentum = 0.9;
  bool tracks_updates = false;   // computes update_norm(); required by the control variate
  bool control_variate = false;  // steps are corrected by how this worker's gradients differ from the mean (SCAFFOLD)
};

/// One round: several steps, each on its share of the samples, in order.
struct LocalRound {
  std::span<const float> values;  // global, the whole flat buffer
  Version version{};              // of the values
  std::span<const std::uint32_t> samples;
  std::uint32_t steps = 1;
  double rate = 0;
  bool fresh = true;      // the values arrived after the last round began; else the local model goes on from its own values
  bool late = false;      // and do not contain the delta of this worker's last round
  double correction = 0;  // alpha
  double mean_steps = 0;  // of all workers' rounds in the update that made `version`; for the control variate
};

/// One owner thread. With SGD, without a control variate, and if the source has a LocalSgd, the model lives on the device. Otherwise it
/// costs memory for five copies of the values (the model, its momentum, the gradient, the look-ahead point, the last delta), one more with
/// tracks_updates and three more with a control variate.
class LocalModel {
 public:
  explicit LocalModel(const LocalModelOptions& options);

  /// Takes the steps and writes the model's own change, without updates of others that arrived meanwhile, to `delta`.
  /// When `io` gives up, so does this, and nothing it leaves is worth anything.
  StepResult run_round(GradientSource& source, const LocalRound& round, IncomingUpdates& incoming, std::span<float> delta, StepIo& io);
  /// Squared norm of the update that made the last round's version; 0: not known.
  [[nodiscard]] double update_norm() const { return update_norm_; }
  /// Forgets the local model: the last round was abandoned, was not finite, or belonged to an earlier member. The next one begins at the
  /// global values, without momentum.
  void forget();

 private:
  void begin(const LocalRound& round);
  StepResult run_round_on_device(LocalSgd& steps, const LocalRound& round, IncomingUpdates& incoming, std::span<float> delta, StepIo& io);
  void begin_on_device(LocalSgd& steps, const LocalRound& round);
  /// Calls act(first, last) for the ranges of the values that were not merged during the last round.
  template <class Do>
  void each_unmerged(Do act);
  void track_update(const LocalRound& round);
  void start_from(const LocalRound& round, std::uint64_t first, std::uint64_t last);
  void merge(const IncomingUpdates::Piece& piece, double correction, std::span<float> start);
  void update_control_variate(const LocalRound& round);

  LocalModelOptions options_;
  Optimizer optimizer_;
  Floats model_;             // w; empty: not begun
  Floats ahead_, gradient_;  // scratch
  Floats last_delta_;        // of the last round
  Floats last_global_;       // values that the last round was given; only with tracks_updates
  std::optional<Version> last_global_version_;
  bool consecutive_ = false;                                     // this round's values are of the version after last_global_version_
  bool begun_on_device_ = false;                                 // the model is on a device; of the above only the version is used
  bool ran_on_device_ = false;                                   // and has a last delta
  std::vector<std::pair<std::uint64_t, std::uint64_t>> merged_;  // ranges of the next values that the model contains already
  double update_norm_ = 0;

  struct PastRound {
    Floats delta;
    double rate = 0;
    std::uint32_t steps = 0;
  };
  std::vector<PastRound> past_rounds_;  // for the control variate: the last two rounds, newest last
  Floats control_variate_;              // estimate of all workers' mean gradient less this worker's; empty: none yet
};

}  // namespace motley::store
