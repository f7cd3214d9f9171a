// The planner against brute force, against what cannot be beaten, and at its refusals.
#include "pipeline/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/rng.h"

namespace motley::pipeline {
namespace {

Problem random_problem(Rng& rng, std::uint32_t blocks, std::uint32_t devices, bool tight) {
  Problem problem;
  for (std::uint32_t b = 0; b < blocks; ++b) {
    const double work = 0.2 + rng.uniform();
    problem.blocks.push_back({"b", work, work, work * rng.uniform(), rng.uniform(), 4 * rng.uniform(), 2 * rng.uniform()});
  }
  for (std::uint32_t d = 0; d < devices; ++d)
    problem.devices.push_back({"d", 1 + static_cast<double>(rng.below(4)), tight ? 4 + 30 * rng.uniform() : 0});
  problem.links.assign(devices, std::vector<DeviceLink>(devices, {1, 0}));
  for (auto& row : problem.links)
    for (DeviceLink& link : row) link.bytes_per_second = rng.uniform() < 0.3 ? 0.1 : 1 + rng.uniform();
  return problem;
}

/// Every cut on every ordered choice of devices.
struct BruteForce {
  explicit BruteForce(const Problem& of) : problem(of), used(of.devices.size()) { extend(0); }
  void extend(std::uint32_t first) {
    if (first == problem.blocks.size()) {
      const Cost cost = cost_of(problem, cut);
      if (cost.full.empty()) best = std::min(best, cost.slot_s);
      return;
    }
    for (std::uint32_t d = 0; d < problem.devices.size(); ++d) {
      if (used[d]) continue;
      used[d] = true;
      for (auto last = first + 1; last <= problem.blocks.size(); ++last) {
        cut.push_back({first, last, d});
        extend(last);
        cut.pop_back();
      }
      used[d] = false;
    }
  }
  const Problem& problem;
  std::vector<bool> used;
  Cut cut;
  double best = std::numeric_limits<double>::infinity();
};

TEST(Exact, EqualsBruteForce) {
  Rng rng(1, "plans");
  int infeasible = 0;
  for (int i = 0; i < 500; ++i) {
    const Problem problem =
        random_problem(rng, 1 + static_cast<std::uint32_t>(rng.below(8)), 1 + static_cast<std::uint32_t>(rng.below(4)), i % 2 == 0);
    const double best = BruteForce(problem).best;
    const auto cut = exact(problem);
    ASSERT_EQ(cut.has_value(), std::isfinite(best)) << "instance " << i;
    if (!cut) {
      ++infeasible;
      continue;
    }
    EXPECT_TRUE(is_valid_cut(problem, *cut));
    const Cost cost = cost_of(problem, *cut);
    EXPECT_TRUE(cost.full.empty());
    EXPECT_NEAR(cost.slot_s, best, 1e-12) << "instance " << i;
  }
  EXPECT_GT(infeasible, 20);
  EXPECT_LT(infeasible, 250);
}

TEST(Heuristic, IsNearTheBestOnFewDevices) {
  Rng rng(2, "plans");
  double worst = 1;
  for (int i = 0; i < 60; ++i) {
    const Problem problem = random_problem(rng, 16, 5, i % 2 == 0);
    const auto best = exact(problem);
    const auto found = heuristic(problem);
    ASSERT_EQ(found.has_value(), best.has_value()) << "instance " << i;
    if (!best) continue;
    EXPECT_TRUE(is_valid_cut(problem, *found));
    EXPECT_TRUE(cost_of(problem, *found).full.empty());
    worst = std::max(worst, cost_of(problem, *found).slot_s / cost_of(problem, *best).slot_s);
  }
  EXPECT_LT(worst, 1.05);
}

/// Two-level links, devices of four speeds, blocks of unlike work.
Problem large_problem(Rng& rng, std::uint32_t devices) {
  Problem problem;
  for (std::uint32_t b = 0; b < 4 * devices; ++b) {
    const double work = 0.5 + rng.uniform();
    problem.blocks.push_back({"b", work, work, work, 1, 1, 1});
  }
  for (std::uint32_t d = 0; d < devices; ++d) problem.devices.push_back({"d", std::array{1.0, 2.0, 4.0, 4.0}.at(rng.below(4)), 0});
  problem.links.assign(devices, std::vector<DeviceLink>(devices));
  for (std::uint32_t a = 0; a < devices; ++a)
    for (std::uint32_t b = 0; b < devices; ++b) problem.links[a][b].bytes_per_second = a / 4 == b / 4 ? 10 : 1;
  return problem;
}

TEST(Heuristic, IsCloseToTheLowerBoundOnManyDevices) {
  Rng rng(3, "plans");
  for (const std::uint32_t devices : {16U, 32U, 64U}) {
    const Problem problem = large_problem(rng, devices);
    const auto found = heuristic(problem);
    ASSERT_TRUE(found.has_value());
    EXPECT_TRUE(is_valid_cut(problem, *found));
    EXPECT_LT(cost_of(problem, *found).slot_s / lower_bound_s(problem), 1.18) << devices << " devices";
  }
}

TEST(LowerBound, IsBelowEveryBest) {
  Rng rng(4, "plans");
  for (int i = 0; i < 100; ++i) {
    const Problem problem = random_problem(rng, 12, 4, false);
    EXPECT_LE(lower_bound_s(problem), cost_of(problem, *exact(problem)).slot_s * (1 + 1e-9));
  }
}

Problem equal_blocks(std::uint32_t blocks, const std::vector<double>& speeds) {
  Problem problem;
  for (std::uint32_t b = 0; b < blocks; ++b) problem.blocks.push_back({"b", 1, 1, 1, 1, 1, 1});
  for (const double speed : speeds) problem.devices.push_back({"d", speed, 0});
  problem.links.assign(speeds.size(), std::vector<DeviceLink>(speeds.size(), {1e6, 0}));
  return problem;
}

TEST(Exact, SharesBlocksBySpeed) {
  const Problem problem = equal_blocks(22, {4, 4, 2, 1});
  EXPECT_DOUBLE_EQ(cost_of(problem, *exact(problem)).slot_s, 6) << "8, 8, 4 and 2 blocks of three seconds";
  EXPECT_DOUBLE_EQ(cost_of(problem, uniform(problem)).slot_s, 18) << "six blocks on the slowest";
}

TEST(Exact, LeavesOutADeviceThatWouldOnlySlowItDown) {
  const Problem problem = equal_blocks(4, {4, 4, 0.1});
  const auto cut = exact(problem);
  EXPECT_EQ(cut->size(), 2U);
}

TEST(Exact, DoesNotCutWhereTheLinkIsTooSlow) {
  Problem problem = equal_blocks(4, {1, 1});
  problem.blocks[1].output_bytes = 1e9;  // the even cut would send it
  EXPECT_NE(exact(problem)->front().last, 2U);
}

/// Devices by turns on two hosts, each with an uplink that carries one block's output in `crossing_s`.
Problem two_hosts(std::uint32_t blocks, std::uint32_t devices, double crossing_s) {
  Problem problem = equal_blocks(blocks, std::vector<double>(devices, 1));
  problem.uplinks.assign(2, {1 / crossing_s, 1 / crossing_s});
  for (std::uint32_t d = 0; d < devices; ++d) {
    problem.devices[d].uplink = d % 2;
    for (std::uint32_t e = 0; e < devices; ++e)
      if (e % 2 != d % 2) problem.links[d][e].bytes_per_second = 1 / crossing_s;
  }
  return problem;
}

TEST(Cost, LinksOverOneUplinkShareIt) {
  const Problem problem = two_hosts(4, 4, 2);
  const Cost by_turns = cost_of(problem, uniform(problem));
  // 0 -> 1 and 2 -> 3 leave the first host, and so do the gradients from 2 back to 1: three at once.
  EXPECT_EQ(by_turns.link_s, (std::vector<double>{6, 6, 6}));
  EXPECT_DOUBLE_EQ(by_turns.slot_s, 6);
  EXPECT_DOUBLE_EQ(by_turns.alone_s, 3);
  const Cost once = cost_of(problem, {{0, 1, 0}, {1, 2, 2}, {2, 3, 1}, {3, 4, 3}});
  EXPECT_DOUBLE_EQ(once.slot_s, 3);
  EXPECT_DOUBLE_EQ(once.link_s[1], 2);
}

TEST(Find, GoesFromHostToHostOnceWhereUplinksAreShared) {
  for (const std::uint32_t devices : {8U, 16U}) {
    const Problem problem = two_hosts(devices, devices, 2);
    const auto found = find(problem);
    EXPECT_DOUBLE_EQ(cost_of(problem, *found.cut).slot_s, 3) << devices;
    EXPECT_EQ(found.cut->size(), devices);
  }
}

TEST(Find, IsNearTheBestWhereUplinksAreShared) {
  Rng rng(9, "plans");
  int best = 0;
  for (int i = 0; i < 200; ++i) {
    Problem problem = random_problem(rng, 3 + static_cast<std::uint32_t>(rng.below(4)), 4, i % 3 == 0);
    problem.uplinks.resize(2);
    for (Uplink& uplink : problem.uplinks) uplink = {0.3 + rng.uniform(), 0.3 + rng.uniform()};
    for (Device& device : problem.devices) device.uplink = rng.below(2);
    for (std::size_t d = 0; d < 4; ++d)
      for (std::size_t e = 0; e < 4; ++e) {
        const auto [from, to] = std::pair(*problem.devices[d].uplink, *problem.devices[e].uplink);
        double& bandwidth = problem.links[d][e].bytes_per_second;
        if (from != to)
          bandwidth = std::min({bandwidth, problem.uplinks[from].up_bytes_per_second, problem.uplinks[to].down_bytes_per_second});
      }
    const auto found = find(problem);
    const BruteForce all(problem);
    ASSERT_EQ(found.cut.has_value(), std::isfinite(all.best)) << i;
    if (!found.cut) continue;
    const double ratio = cost_of(problem, *found.cut).slot_s / all.best;
    EXPECT_LE(ratio, 1.5) << i;
    best += ratio < 1 + 1e-9 ? 1 : 0;
  }
  EXPECT_GE(best, 150);
}

TEST(Uniform, HasAStageForEachDeviceOrBlock) {
  EXPECT_EQ(uniform(equal_blocks(10, {1, 1, 1, 1})), (Cut{{0, 2, 0}, {2, 4, 1}, {4, 7, 2}, {7, 10, 3}}));
  EXPECT_EQ(uniform(equal_blocks(2, {1, 1, 1})).size(), 2U);
}

TEST(BestForOrder, IsTheBestOfAllCutsForThatOrder) {
  Rng rng(5, "plans");
  for (int i = 0; i < 100; ++i) {
    const Problem problem = random_problem(rng, 7, 3, i % 2 == 0);
    const std::vector<std::uint32_t> order{2, 0, 1};
    double best = std::numeric_limits<double>::infinity();
    for (std::uint32_t a = 1; a < 6; ++a)
      for (std::uint32_t b = a + 1; b < 7; ++b) {
        const Cost cost = cost_of(problem, {{0, a, 2}, {a, b, 0}, {b, 7, 1}});
        if (cost.full.empty()) best = std::min(best, cost.slot_s);
      }
    const auto cut = best_for_order(problem, order);
    ASSERT_EQ(cut.has_value(), std::isfinite(best)) << i;
    if (!cut) continue;
    EXPECT_NEAR(cost_of(problem, *cut).slot_s / best, 1, 1.1e-4) << i;
  }
}

TEST(Find, NamesTheStageThatDoesNotFit) {
  Problem problem = equal_blocks(4, {1, 1});
  problem.devices[1].memory_bytes = problem.devices[0].memory_bytes = 5;
  const Found found = find(problem);
  EXPECT_FALSE(found.cut);
  EXPECT_EQ(found.why.stage, 0U);
  EXPECT_DOUBLE_EQ(found.why.bytes, 4 * 2 + 2 * 2) << "two blocks, two micro-batches";
}

TEST(ValidCut, RefusesWhatIsNoCut) {
  const Problem problem = equal_blocks(4, {1, 1});
  EXPECT_TRUE(is_valid_cut(problem, {{0, 3, 1}, {3, 4, 0}}));
  EXPECT_FALSE(is_valid_cut(problem, {{0, 3, 1}, {3, 4, 1}})) << "a device twice";
  EXPECT_FALSE(is_valid_cut(problem, {{0, 3, 1}, {2, 4, 0}})) << "a block twice";
  EXPECT_FALSE(is_valid_cut(problem, {{0, 3, 1}})) << "a block nowhere";
  EXPECT_FALSE(is_valid_cut(problem, {{0, 0, 1}, {0, 4, 0}})) << "an empty stage";
  EXPECT_FALSE(is_valid_cut(problem, {{0, 4, 2}})) << "no such device";
}

}  // namespace
}  // namespace motley::pipeline
