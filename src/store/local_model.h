// The model that a worker walks on by itself for several steps, between what it hears of the others. Its contribution is the way it went;
// when newer global values come, in mid-walk and slice by slice, the walk goes on from there.
//
//   l = w - a, the way since the start a of this round;   newer values z that lack it:   w = z + (1 - alpha)*l;  a = w - l;  v *= 1 - alpha
// The pull alpha keeps local models near the global one: alpha = 1 throws away what was done since, alpha = 0 lets them drift apart. What
// is given up of the way still goes into the contribution: it is in z one round later, for everyone. Values that lack nothing of this
// worker's are taken as they are, and the momentum stays: so local SGD is the same walk with nothing late.
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

/// Newer values that come in while a round is under way.
class IncomingUpdates {
 public:
  virtual ~IncomingUpdates() = default;
  struct Piece {
    std::uint64_t first = 0;  // place in the flat buffer
    std::span<const float> values;
  };
  /// What has come since it was last asked, when `done` steps of the round are done. Good until the next call.
  virtual std::span<const Piece> since(std::uint32_t done) = 0;
};

class NoIncomingUpdates final : public IncomingUpdates {
 public:
  std::span<const Piece> since(std::uint32_t) override { return {}; }
};

struct LocalModelOptions {
  OptimizerSpec optimizer;
  std::uint64_t values{};
  std::uint64_t parameters{};  // of the values; the rest are statistics: theirs is never given up
  double momentum = 0.9;
  bool tracks_updates = false;   // how the global values move: for update_norm() and the control variate
  bool control_variate = false;  // steps are corrected by how this worker's way has differed from everyone's (SCAFFOLD)
};

/// One round: several steps on these samples, dealt out to the steps in order.
struct LocalRound {
  std::span<const float> values;  // global, all of them
  Version version{};              // of the values
  std::span<const std::uint32_t> samples;
  std::uint32_t steps = 1;
  double rate = 0;
  bool fresh = true;      // the values have come since the last round began; else the walk goes on where it is
  bool late = false;      // and lack the last round of this model
  double correction = 0;  // alpha
  double mean_steps = 0;  // of everyone's rounds in the update that made `version`; for the control variate
};

/// One owner thread. Where the source takes local steps on a device (and without a control variate, with sgd) the numbers are there.
/// Else memory, in copies of the values: the model, its momentum, the gradient, a point ahead, the last way; one more to watch
/// how the global values move, three more for the control variate.
class LocalModel {
 public:
  explicit LocalModel(const LocalModelOptions& options);

  /// Takes the steps; the whole way, without what others did meanwhile, goes into `delta`.
  /// When `io` gives up, so does this, and nothing it leaves is worth anything.
  StepResult run_round(GradientSource& source, const LocalRound& round, IncomingUpdates& incoming, std::span<float> delta, StepIo& io);
  /// Squared norm of the update that made the last round's version; 0: not known.
  [[nodiscard]] double update_norm() const { return update_norm_; }
  /// The last round counts for nothing (it was given up, or not finite) or was somebody else's: the next one begins at the global values,
  /// with no momentum.
  void forget();

 private:
  void begin(const LocalRound& round);
  StepResult run_round_on_device(LocalSgd& steps, const LocalRound& round, IncomingUpdates& incoming, std::span<float> delta, StepIo& io);
  void begin_on_device(LocalSgd& steps, const LocalRound& round);
  /// What of the values was not merged in mid-walk, range by range.
  template <class Do>
  void each_unmerged(Do act);
  void watch(const LocalRound& round);
  void adopt(const LocalRound& round, std::uint64_t first, std::uint64_t last);
  void merge(const IncomingUpdates::Piece& piece, double correction, std::span<float> start);
  void learn_difference(const LocalRound& round);

  LocalModelOptions options_;
  Optimizer optimizer_;
  Floats model_;             // w; empty: not begun
  Floats ahead_, gradient_;  // scratch
  Floats last_delta_;        // of the round before
  Floats known_;             // the last global values
  std::optional<Version> known_version_;
  bool follows_ = false;          // this round's values are of the version after those that were watched before it
  bool begun_on_device_ = false;  // the model is on a device; of the above only what watching needs is used
  bool ran_on_device_ = false;    // and has a last way
  std::vector<std::pair<std::uint64_t, std::uint64_t>> merged_;  // ranges of the next values that are in the model already
  double update_norm_ = 0;

  struct PastRound {
    Floats delta;
    double rate = 0;
    std::uint32_t steps = 0;
  };
  std::vector<PastRound> past_rounds_;  // control variate: the last two rounds, newest last
  Floats difference_;                   // control variate: everyone's mean gradient less this worker's
};

}  // namespace motley::store
