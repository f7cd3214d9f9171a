#include "pipeline/problem.h"

#include <algorithm>

#include "base/check.h"

namespace motley::pipeline {

Sums::Sums(std::span<const Block> blocks) : work_{0}, parameters_{0}, kept_{0} {
  for (const Block& block : blocks) {
    work_.push_back(work_.back() + block.work_s());
    parameters_.push_back(parameters_.back() + block.parameter_bytes);
    kept_.push_back(kept_.back() + block.kept_bytes);
  }
}

double stage_bytes(double parameter_bytes, double kept_bytes, std::uint32_t held) { return 4 * parameter_bytes + held * kept_bytes; }

double link_s(const Problem& problem, std::uint32_t last, std::uint32_t from, std::uint32_t to) {
  const double narrower = std::min(problem.links[from][to].bytes_per_second, problem.links[to][from].bytes_per_second);
  return problem.blocks[last - 1].output_bytes / narrower;
}

namespace {

/// Links over one uplink share it in each direction: outputs one way, as many bytes of gradients the other.
void share_uplinks(const Problem& problem, const Cut& cut, std::vector<double>& link_s) {
  struct Bytes {
    double up = 0;
    double down = 0;
  };
  std::vector<Bytes> crossing(problem.uplinks.size());
  const auto each_way = [&](auto&& visit) {  // (boundary, uplink that is left, uplink that is entered)
    for (std::size_t s = 0; s + 1 < cut.size(); ++s) {
      const auto here = problem.devices[cut[s].device].uplink;
      const auto there = problem.devices[cut[s + 1].device].uplink;
      if (here == there) continue;
      visit(s, here, there);
      visit(s, there, here);
    }
  };
  each_way([&](std::size_t s, auto left, auto entered) {
    const double bytes = problem.blocks[cut[s].last - 1].output_bytes;
    if (left) crossing[*left].up += bytes;
    if (entered) crossing[*entered].down += bytes;
  });
  each_way([&](std::size_t s, auto left, auto entered) {
    if (left) link_s[s] = std::max(link_s[s], crossing[*left].up / problem.uplinks[*left].up_bytes_per_second);
    if (entered) link_s[s] = std::max(link_s[s], crossing[*entered].down / problem.uplinks[*entered].down_bytes_per_second);
  });
}

}  // namespace

Cost cost_of(const Problem& problem, const Cut& cut) {
  check(is_valid_cut(problem, cut), "a cut holds every block once");
  const Sums sums(problem.blocks);
  Cost cost;
  const auto count = static_cast<std::uint32_t>(cut.size());
  for (std::uint32_t s = 0; s < count; ++s) {
    const auto& [first, last, device] = cut[s];
    cost.stage_s.push_back(stage_s(problem.devices[device], sums.work_s(first, last)));
    cost.bytes.push_back(stage_bytes(sums.parameter_bytes(first, last), sums.kept_bytes(first, last), count - s));
    const double memory = problem.devices[device].memory_bytes;
    if (memory > 0 && cost.bytes.back() > memory) cost.full.push_back(s);
    if (s + 1 < count) cost.link_s.push_back(link_s(problem, last, device, cut[s + 1].device));
  }
  const auto slowest = [&cost] {
    double time = *std::max_element(cost.stage_s.begin(), cost.stage_s.end());
    for (const double link : cost.link_s) time = std::max(time, link);
    return time;
  };
  cost.alone_s = slowest();
  share_uplinks(problem, cut, cost.link_s);
  cost.slot_s = slowest();
  return cost;
}

std::vector<double> parts_s(const Problem& problem, const Stage& stage) {
  const Device& device = problem.devices[stage.device];
  std::vector<double> parts(3, device.overhead_s / 3);
  for (std::uint32_t b = stage.first; b < stage.last; ++b) {
    parts[0] += problem.blocks[b].forward_s / device.speed;
    parts[1] += problem.blocks[b].input_s / device.speed;
    parts[2] += problem.blocks[b].weight_s / device.speed;
  }
  return parts;
}

bool is_valid_cut(const Problem& problem, const Cut& cut) {
  std::uint32_t next = 0;
  std::vector<bool> used(problem.devices.size());
  for (const Stage& stage : cut) {
    if (stage.first != next || stage.last <= stage.first || stage.device >= used.size() || used[stage.device]) return false;
    used[stage.device] = true;
    next = stage.last;
  }
  return next == problem.blocks.size();
}

}  // namespace motley::pipeline
