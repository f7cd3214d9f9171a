// A simulated device: how long a step really takes there, with jitter, random slowdowns, and the faults `slow` and `pause`.
#pragma once
#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "base/time.h"
#include "cluster/spec.h"

namespace motley::sim {

class Device {
 public:
  /// Own random streams of `seed`, so that one device's luck never moves another's.
  Device(const cluster::Spec& spec, NodeId node, std::uint64_t seed);

  /// When a step of `samples` samples in `steps` local steps that begins at `start` is done. Starts must not go back in time.
  [[nodiscard]] Instant finish(Instant start, std::uint64_t samples, std::uint32_t steps);

 private:
  /// From `from` to `to` everything takes `factor` times as long; infinite: nothing moves.
  struct Spell {
    Instant from{};
    Instant to{};
    double factor = 1;
  };
  void foresee(Instant until);
  [[nodiscard]] double factor_at(Instant now) const;
  [[nodiscard]] Instant next_change(Instant now) const;

  cluster::Node node_;
  Rng jitter_;
  Rng slowdowns_;
  std::vector<Spell> faults_;
  std::vector<Spell> spells_;  // random slowdowns foreseen so far and not over yet
  Instant foreseen_{};
};

}  // namespace motley::sim
