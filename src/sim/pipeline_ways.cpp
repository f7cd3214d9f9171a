#include "sim/pipeline_ways.h"

#include <algorithm>

#include "base/check.h"

namespace motley::sim {

PipelineWays::PipelineWays(const cluster::Spec& cluster, std::uint32_t slices)
    : cluster_(cluster), slices_(slices), up_(cluster.groups.size()), down_(cluster.groups.size()) {
  check(slices > 0, "what travels is in one piece at least");
}

void PipelineWays::lay(const plan::Problem& problem, const plan::Cut& cut) {
  ways_.clear();
  std::fill(up_.begin(), up_.end(), Instant{});
  std::fill(down_.begin(), down_.end(), Instant{});
  for (std::size_t s = 0; s + 1 < cut.size(); ++s) {
    ways_.push_back(between(problem, cut[s].device, cut[s + 1].device));
    ways_.push_back(between(problem, cut[s + 1].device, cut[s].device));
  }
}

PipelineWays::Way PipelineWays::between(const plan::Problem& problem, std::uint32_t from, std::uint32_t to) {
  Way way{problem.links[from][to], {}, {}};
  const auto from_group = cluster_.nodes[from].group;
  const auto to_group = cluster_.nodes[to].group;
  if (from_group != to_group) {
    if (from_group) way.shared.push_back(&up_[*from_group]);
    if (to_group) way.shared.push_back(&down_[*to_group]);
  }
  return way;
}

std::optional<Instant> PipelineWays::send(Instant now, std::size_t index, std::uint64_t micro, double bytes) {
  Way& way = ways_.at(index);
  const bool idle = way.waiting.empty();
  const std::uint32_t slices = way.shared.empty() ? 1 : slices_;  // alone on its way, nothing depends on how it is cut
  for (std::uint32_t i = 0; i < slices; ++i) way.waiting.push_back({micro, bytes / slices, i + 1 == slices});
  return idle ? std::optional(start(now, way)) : std::nullopt;
}

PipelineWays::Passed PipelineWays::through(Instant now, std::size_t index) {
  Way& way = ways_.at(index);
  const Slice passed = way.waiting.front();
  way.waiting.pop_front();
  Passed result{std::nullopt, passed.micro, std::nullopt};
  if (passed.last) result.arrives = now + from_seconds(way.link.latency_s);
  if (!way.waiting.empty()) result.next = start(now, way);
  return result;
}

/// When the first slice will be through.
Instant PipelineWays::start(Instant now, Way& way) {
  Instant begins = now;
  for (const Instant* free : way.shared) begins = std::max(begins, *free);
  const Instant ends = begins + from_seconds(way.waiting.front().bytes / way.link.bytes_per_second);
  for (Instant* free : way.shared) *free = ends;
  return ends;
}

}  // namespace motley::sim
