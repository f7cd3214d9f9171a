// The cost model: equal finish against every way to split the samples, and what the parts sum up to.
#include "cluster/cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "base/rng.h"

namespace motley::cluster {
namespace {

using Batches = std::vector<std::uint32_t>;

/// Relative speeds; speed 1 is 250 samples a second, and a step costs 2 ms whatever its size (the standard cells).
std::vector<Affine> devices_of_speeds(const std::vector<double>& speeds) {
  std::vector<Affine> devices;
  for (const double speed : speeds) devices.push_back({0.002, 1 / (250 * speed)});
  return devices;
}

std::uint64_t sum(const Batches& batches) { return std::accumulate(batches.begin(), batches.end(), std::uint64_t{0}); }

/// When the last device that has anything to do is done.
double makespan(const std::vector<Affine>& devices, const Batches& batches) {
  double last = 0;
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (batches[i] > 0) last = std::max(last, devices[i].at(batches[i]));
  return last;
}

/// The slow clear twin: tries every split of `total` and keeps the earliest finish.
double earliest_finish(const std::vector<Affine>& devices, std::uint64_t total, std::uint32_t least, const Batches& limits) {
  Batches batches(devices.size());
  double best = std::numeric_limits<double>::infinity();
  const auto split = [&](const auto& self, std::size_t i, std::uint64_t left) -> void {
    if (i == devices.size()) {
      if (left == 0) best = std::min(best, makespan(devices, batches));
      return;
    }
    const std::uint64_t most = limits.empty() ? left : std::min<std::uint64_t>(left, limits[i]);
    for (std::uint64_t b = least; b <= most; ++b) {
      batches[i] = static_cast<std::uint32_t>(b);
      self(self, i + 1, left - b);
    }
  };
  split(split, 0, total);
  return best;
}

TEST(FinishTogether, NoSplitOfASmallBatchFinishesEarlier) {
  Rng rng(1, "finish together");
  for (int trial = 0; trial < 1500; ++trial) {
    const std::size_t count = 1 + rng.below(4);
    const std::uint64_t total = rng.below(25);
    std::vector<Affine> devices(count);
    for (Affine& device : devices) device = {rng.below(3) == 0 ? 0 : 5 * rng.uniform(), 0.05 + rng.uniform()};
    const auto least = static_cast<std::uint32_t>(std::min<std::uint64_t>(rng.below(3), total / count));
    Batches limits;
    if (rng.below(2) == 0) {
      for (std::size_t i = 0; i < count; ++i) limits.push_back(least + static_cast<std::uint32_t>(rng.below(12)));
      if (sum(limits) < total) continue;
    }
    SCOPED_TRACE(testing::Message() << "trial " << trial << ": " << count << " devices, " << total << " samples, each at least " << least);

    const Batches plan = finish_together(devices, total, least, limits);
    EXPECT_EQ(sum(plan), total);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_GE(plan[i], least);
      EXPECT_LE(plan[i], limits.empty() ? total : limits[i]);
    }
    EXPECT_NEAR(makespan(devices, plan), earliest_finish(devices, total, least, limits), 1e-9);
  }
}

TEST(FinishTogether, LargeBatchesFinishWithinOneSampleOfEachOther) {
  Rng rng(2, "finish together");
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<Affine> devices(1 + rng.below(64));
    double slowest_sample = 0;
    for (Affine& device : devices) {
      device = {0.01 * rng.uniform(), 0.0005 + 0.01 * rng.uniform()};
      slowest_sample = std::max(slowest_sample, device.per_sample);
    }
    const Batches plan = finish_together(devices, 20'000, 1);
    EXPECT_EQ(sum(plan), 20'000U);
    const double last = makespan(devices, plan);
    for (std::size_t i = 0; i < devices.size(); ++i) EXPECT_GT(devices[i].at(plan[i]), last - 2 * slowest_sample) << "trial " << trial;
  }
}

TEST(FinishTogether, TheStandardClusterGets47_47_23_11) {
  EXPECT_EQ(finish_together(devices_of_speeds({4, 4, 2, 1}), 128, 1), (Batches{47, 47, 23, 11}));
}

TEST(FinishTogether, EqualDevicesGetEqualBatches) {
  EXPECT_EQ(finish_together(devices_of_speeds({1, 1, 1, 1}), 128, 1), (Batches{32, 32, 32, 32}));
}

TEST(FinishTogether, AFixedCostLowersTheBatch) {
  // Same speed, but the second begins 3 samples later: 3 samples fewer.
  EXPECT_EQ(finish_together(std::vector<Affine>{{0, 1}, {3, 1}}, 13, 1), (Batches{8, 5}));
}

TEST(FinishTogether, ADeviceWithTooMuchFixedCostGetsTheLeast) {
  const std::vector<Affine> devices{{0, 1}, {100, 1}, {0, 1}};
  EXPECT_EQ(finish_together(devices, 12, 2), (Batches{5, 2, 5}));
  EXPECT_EQ(finish_together(devices, 12, 0), (Batches{6, 0, 6}));
}

TEST(FinishTogether, SamplesBeyondALimitGoToOtherDevices) {
  EXPECT_EQ(finish_together(std::vector<Affine>{{0, 1}, {0, 1}, {0, 1}}, 12, 1, Batches{2, 9, 9}), (Batches{2, 5, 5}));
}

TEST(FinishTogether, FewerSamplesThanDevicesGoToTheFastest) {
  EXPECT_EQ(finish_together(devices_of_speeds({1, 4, 3, 1}), 2, 1), (Batches{0, 1, 1, 0}));
  EXPECT_EQ(finish_together(devices_of_speeds({1, 4}), 0, 1), (Batches{0, 0}));
}

TEST(FinishTogether, LimitsThatHoldLessThanTheTotalAreAllFull) {
  EXPECT_EQ(finish_together(devices_of_speeds({4, 1}), 100, 1, Batches{20, 30}), (Batches{20, 30}));
}

TEST(FinishTogether, ALimitBelowTheLeastIsKept) {
  EXPECT_EQ(finish_together(devices_of_speeds({1, 1}), 20, 4, Batches{2, 100}), (Batches{2, 18}));
}

TEST(FinishTogether, APlanWithoutDevicesIsABug) { EXPECT_THROW((void)finish_together({}, 10, 1), Bug); }

Spec cluster_of_speeds(const std::vector<double>& speeds) {
  Spec spec;
  for (const double speed : speeds) {
    Node node;
    node.samples_per_second = 250 * speed;
    node.overhead = from_seconds(0.002);
    spec.nodes.push_back(node);
  }
  return spec;
}

TEST(ComputeTime, FixedCostPerStepAndTimePerSampleAddUp) {
  const Node node = cluster_of_speeds({2}).nodes.front();
  EXPECT_EQ(compute_time(node, 100, 1), from_seconds(0.202));
  EXPECT_EQ(compute_time(node, 100, 4), from_seconds(0.208));
  EXPECT_THROW((void)compute_time(Node{}, 1, 1), Bug) << "a device of unknown speed has no time";
}

TEST(SumOfParts, AddsTheThroughputOfEachDeviceAlone) {
  const double alone = 128 / (0.002 + 128 / 250.0);
  EXPECT_NEAR(sum_of_parts(cluster_of_speeds({1}), 128), alone, 1e-9);
  // 47:47:23:11, each at its own speed.
  EXPECT_NEAR(sum_of_parts(cluster_of_speeds({4, 4, 2, 1}), 128), 2 * 47 / 0.049 + 23 / 0.048 + 11 / 0.046, 1e-9);
}

TEST(SumOfParts, ExcludesNodesThatJoinLater) {
  Spec spec = cluster_of_speeds({1, 1});
  spec.faults = {{at_seconds(1), FaultKind::join, NodeId{1}, {}, 1}};
  EXPECT_NEAR(sum_of_parts(spec, 128), sum_of_parts(cluster_of_speeds({1}), 128), 1e-9);
}

TEST(PresentAtStart, OnlyNodesWhoseFirstFaultIsJoinAreAbsent) {
  Spec spec = cluster_of_speeds({1, 1, 1});
  spec.faults = {{at_seconds(1), FaultKind::kill, NodeId{0}, {}, 1},
                 {at_seconds(2), FaultKind::join, NodeId{0}, {}, 1},
                 {at_seconds(3), FaultKind::join, NodeId{1}, {}, 1}};
  EXPECT_TRUE(present_at_start(spec, NodeId{0})) << "it was killed before it came back";
  EXPECT_FALSE(present_at_start(spec, NodeId{1}));
  EXPECT_TRUE(present_at_start(spec, NodeId{2}));
}

TEST(MostSamples, FitBesideFourCopiesOfTheParameters) {
  EXPECT_EQ(max_batch(1000, 100, 60), 10U);
  EXPECT_EQ(max_batch(1059, 100, 60), 10U);
  EXPECT_EQ(max_batch(1060, 100, 60), 11U);
  EXPECT_EQ(step_bytes(100, 60, 11), 1060U);
}

TEST(MostSamples, AreUnlimitedWithoutAMemoryOrWithoutActivations) {
  EXPECT_EQ(max_batch(0, 100, 60), 0U);
  EXPECT_EQ(max_batch(400, 100, 0), 0U);
}

TEST(MostSamples, AreNoneWhenNotASingleSampleFits) {
  EXPECT_EQ(max_batch(459, 100, 60), std::nullopt);
  EXPECT_EQ(max_batch(460, 100, 60), 1U);
  EXPECT_EQ(max_batch(399, 100, 0), std::nullopt) << "the parameters alone are too large";
}

TEST(SumOfParts, LittleMemoryLimitsTheThroughput) {
  const Spec spec = cluster_of_speeds({4, 1});
  const std::vector<std::uint32_t> little{10, 0};
  EXPECT_NEAR(sum_of_parts(spec, 128, little), 10 / affine(spec.nodes[0]).at(10) + 118 / affine(spec.nodes[1]).at(118), 1e-9);
}

}  // namespace
}  // namespace motley::cluster
