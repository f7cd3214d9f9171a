#include "pipeline/replan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "pipeline/partition.h"

namespace motley::pipeline {
namespace {

Problem equal(std::uint32_t blocks, const std::vector<double>& speeds) {
  Problem problem;
  for (std::uint32_t b = 0; b < blocks; ++b) problem.blocks.push_back({"b", 1, 1, 1, 1, 1, 100});
  for (const double speed : speeds) problem.devices.push_back({"d", speed, 0});
  problem.links.assign(speeds.size(), std::vector<DeviceLink>(speeds.size(), {1e3, 0.5}));
  return problem;
}

std::vector<double> measured(const Problem& problem, const Cut& cut, std::uint32_t slow, double factor) {
  std::vector<double> times = cost_of(problem, cut).stage_s;
  times[slow] *= factor;
  return times;
}

TEST(Replan, StaysWhileNobodyIsMuchSlowerThanTheMean) {
  const Problem problem = equal(12, {1, 1, 1});
  const Cut cut = uniform(problem);
  EXPECT_FALSE(replan(problem, cut, measured(problem, cut, 1, 1)));
  EXPECT_FALSE(replan(problem, cut, measured(problem, cut, 1, 1.2)));
}

TEST(Replan, StaysWhereATimeIsNoTime) {
  const Problem problem = equal(12, {1, 1, 1});
  const Cut cut = uniform(problem);
  for (const double factor : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), -5.0})
    EXPECT_FALSE(replan(problem, cut, measured(problem, cut, 1, factor))) << factor;
  std::vector<double> times = measured(problem, cut, 0, 10);
  times[1] = -1;
  EXPECT_FALSE(replan(problem, cut, times));
}

TEST(Replan, MovesBoundaryBlocksFromWhoHasSlowedDown) {
  const Problem problem = equal(24, {1, 1, 1, 1});
  const Cut cut = uniform(problem);
  const auto made = replan(problem, cut, measured(problem, cut, 2, 2));
  ASSERT_TRUE(made);
  EXPECT_TRUE(is_valid_cut(problem, made->cut));
  EXPECT_DOUBLE_EQ(made->problem.devices[2].speed, 0.5);
  EXPECT_DOUBLE_EQ(made->before_s, 36);
  Problem known = problem;
  known.devices[2].speed = 0.5;
  EXPECT_LE(made->after_s, 1.05 * cost_of(known, *exact(known)).slot_s);
}

TEST(Replan, StaysWhereNothingWouldBeBetter) {
  const Problem problem = equal(2, {1, 1});
  const Cut cut = uniform(problem);
  EXPECT_FALSE(replan(problem, cut, measured(problem, cut, 1, 1.9))) << "one block cannot be cut";
}

TEST(Replan, TakesAnotherOrderWhereTheSameIsFarFromTheBest) {
  Problem problem = equal(8, {1, 1, 1});
  const Cut cut{{0, 4, 0}, {4, 8, 1}};  // the third device is not used yet
  const auto made = replan(problem, cut, measured(problem, cut, 1, 4));
  ASSERT_TRUE(made);
  EXPECT_LT(made->after_s, 0.8 * made->before_s);
  EXPECT_TRUE(std::any_of(made->cut.begin(), made->cut.end(), [](const Stage& stage) { return stage.device == 2; }));
}

TEST(MoveS, IsTheLongestOfTheWays) {
  const Problem problem = equal(6, {1, 1, 1});
  const Cut before{{0, 2, 0}, {2, 4, 1}, {4, 6, 2}};
  EXPECT_EQ(move_s(problem, before, before), 0);
  EXPECT_DOUBLE_EQ(move_s(problem, before, {{0, 4, 0}, {4, 5, 1}, {5, 6, 2}}), 0.5 + 2 * 2 * 100 / 1e3) << "two blocks from 1 to 0";
}

}  // namespace
}  // namespace motley::pipeline
