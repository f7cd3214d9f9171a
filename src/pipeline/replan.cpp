#include "pipeline/replan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "pipeline/constants.h"
#include "pipeline/partition.h"

namespace motley::pipeline {
namespace {

std::vector<std::uint32_t> device_of_block(const Problem& problem, const Cut& cut) {
  std::vector<std::uint32_t> devices(problem.blocks.size());
  for (const Stage& stage : cut) std::fill(devices.begin() + stage.first, devices.begin() + stage.last, stage.device);
  return devices;
}

}  // namespace

std::optional<Replanned> replan(const Problem& problem, const Cut& cut, std::span<const double> stage_s) {
  check(stage_s.size() == cut.size(), "every stage was measured");
  if (!std::all_of(stage_s.begin(), stage_s.end(), [](double s) { return std::isfinite(s) && s >= 0; })) return std::nullopt;
  const double slowest = *std::max_element(stage_s.begin(), stage_s.end());
  const double mean = std::accumulate(stage_s.begin(), stage_s.end(), 0.0) / static_cast<double>(stage_s.size());
  if (mean <= 0 || slowest <= replan_unevenness * mean) return std::nullopt;

  Replanned made{{}, problem, 0, 0};
  const Sums sums(problem.blocks);
  std::vector<std::uint32_t> order;
  for (std::size_t s = 0; s < cut.size(); ++s) {
    Device& device = made.problem.devices[cut[s].device];
    const double computing = stage_s[s] - device.overhead_s;
    if (computing > 0) device.speed = sums.work_s(cut[s].first, cut[s].last) / computing;
    order.push_back(cut[s].device);
  }
  made.before_s = cost_of(made.problem, cut).slot_s;
  const auto same_order = best_for_order(made.problem, order);
  const auto any_order = find(made.problem).cut;
  if (same_order) made.cut = *same_order;
  if (any_order && (made.cut.empty() || cost_of(made.problem, made.cut).slot_s > reorder_ratio * cost_of(made.problem, *any_order).slot_s))
    made.cut = *any_order;
  if (made.cut.empty()) return std::nullopt;
  made.after_s = cost_of(made.problem, made.cut).slot_s;
  if (made.before_s <= replan_gain * made.after_s) return std::nullopt;
  return made;
}

double move_s(const Problem& problem, const Cut& from, const Cut& to) {
  const auto before = device_of_block(problem, from);
  const auto after = device_of_block(problem, to);
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> bytes;
  for (std::size_t b = 0; b < before.size(); ++b)
    if (before[b] != after[b]) bytes[{before[b], after[b]}] += 2 * problem.blocks[b].parameter_bytes;
  double longest = 0;
  for (const auto& [link_ends, sum] : bytes) {
    const DeviceLink& link = problem.links[link_ends.first][link_ends.second];
    longest = std::max(longest, sum / link.bytes_per_second + link.latency_s);
  }
  return longest;
}

}  // namespace motley::pipeline
