// A model of the device that a node describes: the time of each step, with jitter, random slowdowns, the cost of new batch sizes and the
// faults `slow`, `pause` and `hang`. The simulator uses it as the device; an emulated device of a real cluster takes as long as it says.
#pragma once
#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "base/time.h"
#include "cluster/cost.h"
#include "cluster/known_batch_sizes.h"
#include "cluster/spec.h"

namespace motley::cluster {

class Device {
 public:
  /// Uses random streams of `seed` of its own, independent of those of other devices.
  Device(const Spec& spec, NodeId node, std::uint64_t seed);

  /// The undisturbed cost of a step.
  [[nodiscard]] Affine cost() const { return affine(node_); }
  /// The end of a step of `samples` samples in `steps` local steps that begins at `start`. Starts must not go back in time.
  [[nodiscard]] Instant finish(Instant start, std::uint64_t samples, std::uint32_t steps);

  /// The end of work that takes `undisturbed` without jitter and slow periods.
  [[nodiscard]] Instant spend(Instant start, Duration undisturbed);

  /// The result of a time-limited step: the device checks its clock after every `micro` samples and stops nearest to `limit`. One with a
  /// batch multiple decides before it begins, by its recent time per sample.
  struct StepOutcome {
    std::uint64_t samples = 0;  // done, at least one
    Instant end{};
    bool new_batch_size = false;  // the device's first step of this size, which took longer
  };
  /// A step of at most `samples` samples. A limit of 0 is none.
  [[nodiscard]] StepOutcome work(Instant start, std::uint64_t samples, std::uint32_t steps, Duration limit, std::uint32_t micro);

  /// The end of the hang or pause that the device is in at `now`; else `now`. Until then it does not even stop a cancelled step.
  [[nodiscard]] Instant hangs_until(Instant now) const;

 private:
  [[nodiscard]] Instant finish(Instant start, double work);
  [[nodiscard]] StepOutcome at_once(Instant start, std::uint64_t samples, std::uint32_t steps, double stretch);
  /// From `from` to `to` steps take `factor` times as long; infinite: the device stands still.
  struct SlowPeriod {
    Instant from{};
    Instant to{};
    double factor = 1;
  };
  void extend_slow_periods(Instant until);
  [[nodiscard]] double factor_at(Instant now) const;
  [[nodiscard]] Instant next_change(Instant now) const;

  Node node_;
  Rng jitter_;
  Rng slowdowns_;
  std::vector<SlowPeriod> faults_;
  std::vector<SlowPeriod> stops_;         // those of `faults_` with an infinite factor
  std::vector<SlowPeriod> slow_periods_;  // random slowdowns drawn so far and not over yet
  Instant generated_until_{};
  KnownBatchSizes known_sizes_;  // of a device with a batch multiple
};

}  // namespace motley::cluster
