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
#include "pipeline/problem.h"

namespace motley::sim {

class PipelineChannels {
 public:
  /// Keeps a reference to `cluster`. `slices`: that each output and each gradient is cut into, 1 at least.
  PipelineChannels(const cluster::Spec& cluster, std::uint32_t slices);
  PipelineChannels(const PipelineChannels&) = delete;  // ways point to its uplinks
  PipelineChannels& operator=(const PipelineChannels&) = delete;

  /// The ways of this cut; nothing is under way.
  void rebuild(const pipeline::Problem& problem, const pipeline::Cut& cut);

  /// From a stage to the next, or back to it from there.
  [[nodiscard]] static std::size_t forth(std::uint32_t stage) { return 2 * std::size_t{stage}; }
  [[nodiscard]] static std::size_t back(std::uint32_t stage) { return 2 * std::size_t{stage} + 1; }

  /// By the index of a way. When through() is to be called for it; none: it will have been, for what goes before.
  [[nodiscard]] std::optional<Instant> send(Instant now, std::size_t index, std::uint64_t micro, double bytes);

  struct SliceDone {
    std::optional<Instant> arrives;  // the micro-batch, whole, if this was the last slice of it
    std::uint64_t micro = 0;
    std::optional<Instant> next;  // when to call again
  };
  /// The slice under way has left it.
  [[nodiscard]] SliceDone through(Instant now, std::size_t index);

 private:
  struct Slice {
    std::uint64_t micro = 0;
    double bytes = 0;
    bool last = false;
  };
  struct Channel {
    pipeline::DeviceLink link;
    std::vector<Instant*> shared;  // uplinks on it: when each is free
    std::deque<Slice> waiting;     // the first is under way
  };
  [[nodiscard]] Channel between(const pipeline::Problem& problem, std::uint32_t from, std::uint32_t to);
  [[nodiscard]] static Instant start(Instant now, Channel& channel);

  const cluster::Spec& cluster_;
  std::uint32_t slices_;
  std::vector<Instant> up_, down_;  // by group: when its uplink is free
  std::vector<Channel> channels_;
};

}  // namespace motley::sim
