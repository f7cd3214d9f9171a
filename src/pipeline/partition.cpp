#include "pipeline/partition.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.h"

namespace motley::pipeline {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

bool fits(const Problem& problem, const Sums& sums, const Stage& stage, std::uint32_t held) {
  const double memory = problem.devices[stage.device].memory_bytes;
  return memory <= 0 ||
         stage_bytes(sums.parameter_bytes(stage.first, stage.last), sums.kept_bytes(stage.first, stage.last), held) <= memory;
}

double stage_s(const Problem& problem, const Sums& sums, const Stage& stage) {
  return pipeline::stage_s(problem.devices[stage.device], sums.work_s(stage.first, stage.last));
}

bool same_place(const Problem& problem, std::uint32_t a, std::uint32_t b) {
  return problem.devices[a].uplink && problem.devices[a].uplink == problem.devices[b].uplink;
}

/// The table of exact(): one cell for each set of devices, the first of them and the first block.
class Table {
 public:
  Table(std::uint32_t devices, std::uint32_t blocks)
      : devices_(devices), blocks_(blocks), cells_((std::size_t{1} << devices) * devices * blocks) {}
  struct Cell {
    double time = never;
    std::uint32_t cut = 0;   // the first block of the next stage; blocks: there is none
    std::uint32_t next = 0;  // its device
  };
  Cell& at(std::uint32_t set, std::uint32_t device, std::uint32_t block) {
    return cells_[(std::size_t{set} * devices_ + device) * blocks_ + block];
  }

 private:
  std::uint32_t devices_, blocks_;
  std::vector<Cell> cells_;
};

}  // namespace

std::optional<Cut> exact(const Problem& problem, Return back) {
  check(problem.devices.size() <= most_devices_exact, "the exact search is for few devices");
  const auto devices = static_cast<std::uint32_t>(problem.devices.size());
  const auto blocks = static_cast<std::uint32_t>(problem.blocks.size());
  const Sums sums(problem.blocks);
  Table table(devices, blocks);
  // By device: those of its uplink, none where returning is allowed.
  std::vector<std::uint32_t> beside(devices, 0);
  for (std::uint32_t d = 0; d < devices && back == Return::never; ++d)
    for (std::uint32_t e = 0; e < devices; ++e)
      if (same_place(problem, d, e)) beside[d] |= 1U << e;
  double best = never;
  std::uint32_t best_set = 0;
  std::uint32_t best_device = 0;
  for (std::uint32_t set = 1; set < (1U << devices); ++set) {
    const auto held = static_cast<std::uint32_t>(std::popcount(set));
    if (held > problem.stages()) continue;
    for (std::uint32_t d = 0; d < devices; ++d) {
      if ((set >> d & 1U) == 0) continue;
      const std::uint32_t rest = set & ~(1U << d);
      for (std::uint32_t i = 0; i < blocks; ++i) {
        Table::Cell& cell = table.at(set, d, i);
        if (rest == 0) {
          if (fits(problem, sums, {i, blocks, d}, held)) cell = {stage_s(problem, sums, {i, blocks, d}), blocks, 0};
          continue;
        }
        for (std::uint32_t j = i + 1; j < blocks; ++j) {
          const Stage stage{i, j, d};
          const double own = stage_s(problem, sums, stage);
          if (own >= cell.time || !fits(problem, sums, stage, held)) break;  // only grows with j
          for (std::uint32_t e = 0; e < devices; ++e) {
            if ((rest >> e & 1U) == 0) continue;
            if ((rest & beside[d]) != 0 && (beside[d] >> e & 1U) == 0) continue;  // some of them would come later
            const double time = std::max({own, link_s(problem, j, d, e), table.at(rest, e, j).time});
            if (time < cell.time) cell = {time, j, e};
          }
        }
      }
      if (table.at(set, d, 0).time < best) {
        best = table.at(set, d, 0).time;
        best_set = set;
        best_device = d;
      }
    }
  }
  if (best == never) return std::nullopt;
  Cut cut;
  for (std::uint32_t set = best_set, d = best_device, i = 0; i < blocks;) {
    const Table::Cell& cell = table.at(set, d, i);
    cut.push_back({i, cell.cut, d});
    set &= ~(1U << d);
    d = cell.next;
    i = cell.cut;
  }
  return cut;
}

namespace {

/// One pass for one order of devices: is there a cut in which nothing takes longer than a bound? Which boundaries stage s can end at is
/// kept as a set; blocks move from one pass to the next in windows, so this is about blocks times stages.
class Pass {
 public:
  Pass(const Problem& problem, const Sums& sums) : problem_(problem), sums_(sums) {}

  /// The cut, or nothing.
  std::optional<Cut> under(double bound, std::span<const std::uint32_t> order) {
    const auto blocks = static_cast<std::uint32_t>(problem_.blocks.size());
    const auto stages = static_cast<std::uint32_t>(order.size());
    if (stages > problem_.stages()) return std::nullopt;
    came_from_.assign(std::size_t{stages} * (blocks + 1), none);
    reached_.assign(1, 0);
    for (std::uint32_t s = 0; s < stages; ++s) {
      next_.clear();
      const bool final = s + 1 == stages;
      for (const std::uint32_t first : reached_) {
        // The last stage ends at the end; the others leave a block for each that follows.
        const std::uint32_t least = final ? blocks : first + 1;
        const std::uint32_t most = final ? blocks : blocks - (stages - 1 - s);
        for (std::uint32_t last = std::max(least, next_.empty() ? least : next_.back() + 1); last <= most; ++last) {
          const Stage stage{first, last, order[s]};
          if (stage_s(problem_, sums_, stage) > bound || !fits(problem_, sums_, stage, stages - s)) break;
          if (!final && link_s(problem_, last, order[s], order[s + 1]) > bound) continue;
          came_from_[std::size_t{s} * (blocks + 1) + last] = first;
          next_.push_back(last);
        }
      }
      if (next_.empty()) return std::nullopt;
      std::swap(reached_, next_);
    }
    Cut cut(stages);
    std::uint32_t last = blocks;
    for (std::uint32_t s = stages; s-- > 0;) {
      const std::uint32_t first = came_from_[std::size_t{s} * (blocks + 1) + last];
      cut[s] = {first, last, order[s]};
      last = first;
    }
    return cut;
  }

 private:
  static constexpr std::uint32_t none = ~0U;
  const Problem& problem_;
  const Sums& sums_;
  std::vector<std::uint32_t> came_from_;  // [stage][boundary]
  std::vector<std::uint32_t> reached_, next_;
};

/// Down from a cut that is known to the best for its order, to one part in 10,000.
Cut refine(const Problem& problem, Pass& pass, std::span<const std::uint32_t> order, Cut cut) {
  constexpr double precision = 1e-4;
  double high = cost_of(problem, cut).alone_s;
  double low = 0;
  while (high - low > precision * high) {
    const double middle = (low + high) / 2;
    if (auto better = pass.under(middle, order)) {
      cut = std::move(*better);
      high = cost_of(problem, cut).alone_s;
    } else {
      low = middle;
    }
  }
  return cut;
}

/// A cut that fits the memory, however slow.
std::optional<Cut> any_for_order(Pass& pass, std::span<const std::uint32_t> order) { return pass.under(never, order); }

/// A small generator with a fixed seed, for the random moves of the heuristic.
class Dice {
 public:
  std::size_t below(std::size_t n) {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::size_t>((state_ >> 33U) % n);
  }

 private:
  std::uint64_t state_ = 42;
};

/// From the fastest device along the fastest links; fast devices before slow ones where links are alike.
std::vector<std::uint32_t> greedy_chain(const Problem& problem) {
  const auto count = static_cast<std::uint32_t>(problem.devices.size());
  std::vector<bool> used(count);
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::optional<std::uint32_t> best;
    for (std::uint32_t d = 0; d < count; ++d) {
      if (used[d]) continue;
      const auto rank = [&](std::uint32_t device) {
        const double bandwidth = order.empty() ? 0 : problem.links[order.back()][device].bytes_per_second;
        return std::pair(bandwidth, problem.devices[device].speed);
      };
      if (!best || rank(d) > rank(*best)) best = d;
    }
    used[*best] = true;
    order.push_back(*best);
  }
  return order;
}

std::vector<std::uint32_t> neighbour(const std::vector<std::uint32_t>& order, const std::vector<std::uint32_t>& unused, Dice& dice) {
  std::vector<std::uint32_t> moved = order;
  const std::size_t a = dice.below(moved.size());
  const std::size_t b = dice.below(moved.size());
  switch (dice.below(unused.empty() ? 5 : 7)) {
    case 0:
    case 1: std::swap(moved[a], moved[b]); break;
    case 2:
    case 3: {
      const std::uint32_t device = moved[a];
      moved.erase(moved.begin() + static_cast<std::ptrdiff_t>(a));
      moved.insert(moved.begin() + static_cast<std::ptrdiff_t>(b), device);
      break;
    }
    case 4:
      if (moved.size() > 1) moved.erase(moved.begin() + static_cast<std::ptrdiff_t>(a));
      break;
    case 5: moved[a] = unused[dice.below(unused.size())]; break;
    default: moved.insert(moved.begin() + static_cast<std::ptrdiff_t>(a), unused[dice.below(unused.size())]); break;
  }
  return moved;
}

std::vector<std::uint32_t> others(const Problem& problem, const std::vector<std::uint32_t>& order) {
  std::vector<bool> used(problem.devices.size());
  for (const std::uint32_t device : order) used[device] = true;
  std::vector<std::uint32_t> rest;
  for (std::uint32_t d = 0; d < used.size(); ++d)
    if (!used[d]) rest.push_back(d);
  return rest;
}

}  // namespace

std::optional<Cut> best_for_order(const Problem& problem, std::span<const std::uint32_t> order) {
  const Sums sums(problem.blocks);
  Pass pass(problem, sums);
  auto cut = any_for_order(pass, order);
  if (!cut) return std::nullopt;
  return refine(problem, pass, order, std::move(*cut));
}

namespace {

/// Devices of one uplink one after the other, the uplinks in the order of their first.
std::vector<std::uint32_t> together(const Problem& problem, const std::vector<std::uint32_t>& order) {
  std::vector<std::uint32_t> sorted;
  for (const std::uint32_t device : order) {
    const auto last = std::find_if(sorted.rbegin(), sorted.rend(), [&](std::uint32_t other) { return same_place(problem, device, other); });
    sorted.insert(last == sorted.rend() ? sorted.end() : last.base(), device);
  }
  return sorted;
}

/// Moves from this order on, as long as they help.
std::optional<Cut> climb(const Problem& problem, Pass& pass, std::vector<std::uint32_t> order, Return back) {
  constexpr int moves = 2000;
  constexpr double clearly = 1 - 1e-4;
  if (back == Return::never) order = together(problem, order);
  if (order.size() > problem.stages()) order.resize(problem.stages());
  std::optional<Cut> best = any_for_order(pass, order);
  while (!best && order.size() > 1) {  // fewer stages hold fewer micro-batches
    order.pop_back();
    best = any_for_order(pass, order);
  }
  if (!best) return std::nullopt;
  best = refine(problem, pass, order, std::move(*best));
  double time = cost_of(problem, *best).alone_s;
  std::vector<std::uint32_t> unused = others(problem, order);
  Dice dice;
  for (int move = 0; move < moves; ++move) {
    std::vector<std::uint32_t> moved = neighbour(order, unused, dice);
    for (int more = move % 3; more > 0; --more)
      moved = neighbour(moved, others(problem, moved), dice);  // single moves do not reach every order
    if (back == Return::never && moved != together(problem, moved)) continue;
    auto cut = pass.under(time * clearly, moved);
    if (!cut) continue;
    order = std::move(moved);
    unused = others(problem, order);
    best = refine(problem, pass, order, std::move(*cut));
    time = cost_of(problem, *best).alone_s;
  }
  return best;
}

}  // namespace

std::optional<Cut> heuristic(const Problem& problem, Return back) {
  const Sums sums(problem.blocks);
  Pass pass(problem, sums);
  std::vector<std::uint32_t> by_speed(problem.devices.size());
  std::iota(by_speed.begin(), by_speed.end(), 0U);
  std::stable_sort(by_speed.begin(), by_speed.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return problem.devices[a].speed > problem.devices[b].speed; });
  std::optional<Cut> best = climb(problem, pass, greedy_chain(problem), back);
  std::optional<Cut> other = climb(problem, pass, by_speed, back);
  const bool better = other && (!best || cost_of(problem, *other).alone_s < cost_of(problem, *best).alone_s);
  return better ? other : best;
}

namespace {

/// The same problem with a share of each uplink for every link that crosses it.
Problem as_if_crossed(Problem problem, double times) {
  for (std::uint32_t d = 0; d < problem.devices.size(); ++d)
    for (std::uint32_t e = 0; e < problem.devices.size(); ++e)
      if (problem.devices[d].uplink != problem.devices[e].uplink) problem.links[d][e].bytes_per_second /= times;
  return problem;
}

}  // namespace

Found find(const Problem& problem) {
  Found found;
  const auto search = problem.devices.size() <= most_devices_exact ? exact : heuristic;
  found.cut = search(problem, Return::allowed);
  const auto offer = [&](std::optional<Cut> other) {
    if (other && cost_of(problem, *other).slot_s < cost_of(problem, *found.cut).slot_s) found.cut = std::move(other);
  };
  if (found.cut && !problem.uplinks.empty() && cost_of(problem, *found.cut).slot_s > cost_of(problem, *found.cut).alone_s) {
    offer(search(problem, Return::never));
    for (const double crossings : {2.0, 3.0}) offer(search(as_if_crossed(problem, crossings), Return::allowed));
  }
  if (found.cut) return found;
  // Named in the refusal: the uniform cut's stage that misses its memory by the most.
  found.why.nearest = uniform(problem);
  const Cost cost = cost_of(problem, found.why.nearest);
  if (cost.full.empty()) {  // the heuristic has not found it
    found.cut = found.why.nearest;
    return found;
  }
  double worst = 0;
  for (const std::uint32_t s : cost.full) {
    const double memory = problem.devices[found.why.nearest[s].device].memory_bytes;
    if (cost.bytes[s] / memory <= worst) continue;
    worst = cost.bytes[s] / memory;
    found.why.stage = s;
    found.why.bytes = cost.bytes[s];
  }
  return found;
}

Cut uniform(const Problem& problem) {
  const auto blocks = static_cast<std::uint32_t>(problem.blocks.size());
  const std::uint32_t stages = problem.stages();
  Cut cut;
  for (std::uint32_t s = 0, first = 0; s < stages; ++s) {
    const std::uint32_t last = first + (blocks - first) / (stages - s);
    cut.push_back({first, last, s});
    first = last;
  }
  return cut;
}

double lower_bound_s(const Problem& problem) {
  const auto blocks = static_cast<std::uint32_t>(problem.blocks.size());
  const Sums sums(problem.blocks);
  const double all = sums.work_s(0, blocks);
  // The most work in one run of blocks that a device of this speed does within the bound.
  const auto most_work = [&](double bound, double speed) {
    double most = 0;
    for (std::uint32_t first = 0, last = 0; first < blocks; ++first) {
      last = std::max(last, first);
      while (last < blocks && sums.work_s(first, last + 1) / speed <= bound) ++last;
      most = std::max(most, sums.work_s(first, last));
    }
    return most;
  };
  double fastest = 0;
  for (const Device& device : problem.devices) fastest = std::max(fastest, device.speed);
  double low = 0;
  double high = all / fastest;  // one device alone
  constexpr double precision = 1e-6;
  while (high - low > precision * high) {
    const double bound = (low + high) / 2;
    double done = 0;
    for (const Device& device : problem.devices) done += most_work(bound, device.speed);
    (done >= all ? high : low) = bound;
  }
  return low;
}

}  // namespace motley::pipeline
