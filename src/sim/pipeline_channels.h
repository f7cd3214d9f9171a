// The channels between the stages of a simulated pipeline: one forward and one back between neighbours, each first-in-first-out, with its
// bandwidth and latency. Outputs and gradients are sent in slices. Channels between groups share the groups' uplinks, slice by slice. A
// slice occupies its channel and the uplinks on it for as long as its bytes take on the narrowest of them.
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
  /// Keeps a reference to `cluster`. `slices`: of each output and each gradient, at least 1.
  PipelineChannels(const cluster::Spec& cluster, std::uint32_t slices);
  PipelineChannels(const PipelineChannels&) = delete;  // channels point to its uplinks
  PipelineChannels& operator=(const PipelineChannels&) = delete;

  /// Makes the channels of this cut, empty.
  void rebuild(const pipeline::Problem& problem, const pipeline::Cut& cut);

  /// Indices of the channel from a stage to the next, and back.
  [[nodiscard]] static std::size_t forth(std::uint32_t stage) { return 2 * std::size_t{stage}; }
  [[nodiscard]] static std::size_t back(std::uint32_t stage) { return 2 * std::size_t{stage} + 1; }

  /// When to call through() for this channel; none: it is already due for an earlier micro-batch.
  [[nodiscard]] std::optional<Instant> send(Instant now, std::size_t index, std::uint64_t micro, double bytes);

  struct SliceDone {
    std::optional<Instant> arrives;  // the micro-batch, if this was its last slice
    std::uint64_t micro = 0;
    std::optional<Instant> next;  // when to call again
  };
  /// The channel has sent its current slice.
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
    std::deque<Slice> waiting;     // the first is being sent
  };
  [[nodiscard]] Channel between(const pipeline::Problem& problem, std::uint32_t from, std::uint32_t to);
  [[nodiscard]] static Instant start(Instant now, Channel& channel);

  const cluster::Spec& cluster_;
  std::uint32_t slices_;
  std::vector<Instant> up_, down_;  // by group: when its uplink is free
  std::vector<Channel> channels_;
};

}  // namespace motley::sim
