// A device as its node describes it, hour by hour: how long a step takes there, with jitter, random slowdowns, sizes that it meets for the
// first time, and the faults `slow`, `pause` and `hang`. The simulator takes it for the device; an emulated device of a real cluster takes
// as long as it says.
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
  /// Own random streams of `seed`, so that one device's luck never moves another's.
  Device(const Spec& spec, NodeId node, std::uint64_t seed);

  /// Undisturbed.
  [[nodiscard]] Affine cost() const { return affine(node_); }
  /// When a step of `samples` samples in `steps` local steps that begins at `start` is done. Starts must not go back in time.
  [[nodiscard]] Instant finish(Instant start, std::uint64_t samples, std::uint32_t steps);

  /// When work that would take `undisturbed` is done, with this node's jitter and spells.
  [[nodiscard]] Instant spend(Instant start, Duration undisturbed);

  /// What a device does that looks at its clock after every `micro` samples and stops where that is nearest to `limit`. One with a grain
  /// decides before it begins, by how long samples took it lately.
  struct StepOutcome {
    std::uint64_t samples = 0;  // done, at least one
    Instant end{};
    bool new_batch_size = false;  // the device has never done a step of this size, and takes longer
  };
  /// The same for one step of at most `samples` samples. A limit of 0 is none.
  [[nodiscard]] StepOutcome work(Instant start, std::uint64_t samples, std::uint32_t steps, Duration limit, std::uint32_t micro);

  /// When the device moves again, if it hangs or is paused at `now`; else `now`. Until then it does not even stop what it is told to stop.
  [[nodiscard]] Instant hangs_until(Instant now) const;

 private:
  [[nodiscard]] Instant finish(Instant start, double work);
  [[nodiscard]] StepOutcome at_once(Instant start, std::uint64_t samples, std::uint32_t steps, double stretch);
  /// From `from` to `to` everything takes `factor` times as long; infinite: nothing moves.
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
  std::vector<SlowPeriod> stops_;         // those of `faults_` in which nothing moves
  std::vector<SlowPeriod> slow_periods_;  // random slowdowns foreseen so far and not over yet
  Instant generated_until_{};
  KnownBatchSizes known_sizes_;  // of a device with a grain
};

}  // namespace motley::cluster
