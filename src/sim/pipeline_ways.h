// The ways between the stages of a simulated pipeline: one forth and one back between neighbours, each first-in-first-out, each at its
// bandwidth and latency. What travels goes in slices; neighbours in different groups share their groups' uplinks with whoever else crosses
// them, in turn, slice by slice. A slice takes its way, and the uplinks on it, for as long as its bytes take on the narrowest part.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/time.h"
#include "cluster/spec.h"
#include "plan/pipeline.h"

namespace motley::sim {

class PipelineWays {
 public:
  /// Keeps a reference to `cluster`. `slices`: that each output and each gradient is cut into, 1 at least.
  PipelineWays(const cluster::Spec& cluster, std::uint32_t slices);
  PipelineWays(const PipelineWays&) = delete;  // ways point to its uplinks
  PipelineWays& operator=(const PipelineWays&) = delete;

  /// The ways of this cut; nothing is under way.
  void lay(const plan::Problem& problem, const plan::Cut& cut);

  /// From a stage to the next, or back to it from there.
  [[nodiscard]] static std::size_t forth(std::uint32_t stage) { return 2 * std::size_t{stage}; }
  [[nodiscard]] static std::size_t back(std::uint32_t stage) { return 2 * std::size_t{stage} + 1; }

  /// By the index of a way. When through() is to be called for it; none: it will have been, for what goes before.
  [[nodiscard]] std::optional<Instant> send(Instant now, std::size_t index, std::uint64_t micro, double bytes);

  struct Passed {
    std::optional<Instant> arrives;  // the micro-batch, whole, if this was the last slice of it
    std::uint64_t micro = 0;
    std::optional<Instant> next;  // when to call again
  };
  /// The slice under way has left it.
  [[nodiscard]] Passed through(Instant now, std::size_t index);

 private:
  struct Slice {
    std::uint64_t micro = 0;
    double bytes = 0;
    bool last = false;
  };
  struct Way {
    plan::Between link;
    std::vector<Instant*> shared;  // uplinks on it: when each is free
    std::deque<Slice> waiting;     // the first is under way
  };
  [[nodiscard]] Way between(const plan::Problem& problem, std::uint32_t from, std::uint32_t to);
  [[nodiscard]] static Instant start(Instant now, Way& way);

  const cluster::Spec& cluster_;
  std::uint32_t slices_;
  std::vector<Instant> up_, down_;  // by group: when its uplink is free
  std::vector<Way> ways_;
};

}  // namespace motley::sim
