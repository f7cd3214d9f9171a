#include "sim/pipeline_channels.h"

#include <algorithm>

#include "base/check.h"

namespace motley::sim {

PipelineChannels::PipelineChannels(const cluster::Spec& cluster, std::uint32_t slices)
    : cluster_(cluster), slices_(slices), up_(cluster.groups.size()), down_(cluster.groups.size()) {
  check(slices > 0, "an output has one slice at least");
}

void PipelineChannels::rebuild(const pipeline::Problem& problem, const pipeline::Cut& cut) {
  channels_.clear();
  std::fill(up_.begin(), up_.end(), Instant{});
  std::fill(down_.begin(), down_.end(), Instant{});
  for (std::size_t s = 0; s + 1 < cut.size(); ++s) {
    channels_.push_back(between(problem, cut[s].device, cut[s + 1].device));
    channels_.push_back(between(problem, cut[s + 1].device, cut[s].device));
  }
}

PipelineChannels::Channel PipelineChannels::between(const pipeline::Problem& problem, std::uint32_t from, std::uint32_t to) {
  Channel channel{problem.links[from][to], {}, {}};
  const auto from_group = cluster_.nodes[from].group;
  const auto to_group = cluster_.nodes[to].group;
  if (from_group != to_group) {
    if (from_group) channel.shared.push_back(&up_[*from_group]);
    if (to_group) channel.shared.push_back(&down_[*to_group]);
  }
  return channel;
}

std::optional<Instant> PipelineChannels::send(Instant now, std::size_t index, std::uint64_t micro, double bytes) {
  Channel& channel = channels_.at(index);
  const bool idle = channel.waiting.empty();
  const std::uint32_t slices = channel.shared.empty() ? 1 : slices_;  // without shared uplinks slices change no time
  for (std::uint32_t i = 0; i < slices; ++i) channel.waiting.push_back({micro, bytes / slices, i + 1 == slices});
  return idle ? std::optional(start(now, channel)) : std::nullopt;
}

PipelineChannels::SliceDone PipelineChannels::through(Instant now, std::size_t index) {
  Channel& channel = channels_.at(index);
  const Slice passed = channel.waiting.front();
  channel.waiting.pop_front();
  SliceDone result{std::nullopt, passed.micro, std::nullopt};
  if (passed.last) result.arrives = now + from_seconds(channel.link.latency_s);
  if (!channel.waiting.empty()) result.next = start(now, channel);
  return result;
}

/// Returns when the first slice will be sent.
Instant PipelineChannels::start(Instant now, Channel& channel) {
  Instant begins = now;
  for (const Instant* free : channel.shared) begins = std::max(begins, *free);
  const Instant ends = begins + from_seconds(channel.waiting.front().bytes / channel.link.bytes_per_second);
  for (Instant* free : channel.shared) *free = ends;
  return ends;
}

}  // namespace motley::sim
