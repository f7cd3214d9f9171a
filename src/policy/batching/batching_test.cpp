// Loads: equal shares, fixed batches, and batches by measured speed that settle soon, stay put within the dead band and survive comings and
// goings.
#include <gtest/gtest.h>

#include <numeric>

#include "base/rng.h"
#include "policy/batching/balanced_batching.h"
#include "policy/batching/equal_batching.h"

namespace motley::policy {
namespace {

using Batches = std::vector<std::uint32_t>;

std::vector<WorkerId> workers(std::uint32_t first, std::uint32_t count) {
  std::vector<WorkerId> ids;
  for (std::uint32_t i = 0; i < count; ++i) ids.push_back({first + i});
  return ids;
}

/// New workers without a memory limit.
std::vector<WorkerProfile> profiles(std::uint32_t first, std::uint32_t count) {
  std::vector<WorkerProfile> result;
  for (const WorkerId worker : workers(first, count)) result.push_back({.worker = worker});
  return result;
}

/// Workers 0, 1, ... of which one step may have so many samples; 0: no limit.
std::vector<WorkerProfile> with_limits(const Batches& limits) {
  std::vector<WorkerProfile> result = profiles(0, static_cast<std::uint32_t>(limits.size()));
  for (std::size_t i = 0; i < limits.size(); ++i) result[i].device.max_batch = limits[i];
  return result;
}

Batches batches(const BatchingPolicy& batching, const std::vector<WorkerId>& of) {
  Batches result;
  for (const WorkerId worker : of) result.push_back(batching.batch(worker));
  return result;
}

TEST(EqualBatching, TheFirstWorkersTakeTheRemainder) {
  EqualBatching batching(10);
  batching.joined(profiles(0, 4));
  EXPECT_EQ(batches(batching, workers(0, 4)), (Batches{3, 3, 2, 2}));
  batching.left({1});
  EXPECT_EQ(batches(batching, {{0}, {2}, {3}}), (Batches{4, 3, 3}));
}

TEST(EqualBatching, EveryWorkerGetsASample) {
  EqualBatching batching(2);
  batching.joined(profiles(0, 3));
  EXPECT_EQ(batches(batching, workers(0, 3)), (Batches{1, 1, 1}));
}

TEST(FixedBatching, IsWhatTheUserListedAndEqualBeyondTheList) {
  FixedBatching batching(60, {40, 20});
  batching.joined(profiles(0, 3));
  EXPECT_EQ(batches(batching, workers(0, 3)), (Batches{40, 20, 20}));
}

TEST(EqualBatching, SamplesBeyondMemoryGoToOtherWorkers) {
  EqualBatching batching(100);
  batching.joined(with_limits({0, 10, 0, 30}));
  EXPECT_EQ(batches(batching, workers(0, 4)), (Batches{30, 10, 30, 30}));
  batching.left({0});
  EXPECT_EQ(batches(batching, {{1}, {2}, {3}}), (Batches{10, 60, 30}));
  batching.left({2});
  EXPECT_EQ(batches(batching, {{1}, {3}}), (Batches{10, 30})) << "all are full: the batch is smaller than the global one";
}

TEST(EqualBatching, WithoutLimitsIsPlainDivision) {
  for (const std::uint32_t global : {1U, 7U, 64U, 1000U, 12'345U})
    for (const std::uint32_t count : {1U, 2U, 3U, 7U, 64U, 999U}) {
      EqualBatching batching(global);
      batching.joined(profiles(0, count));
      for (std::uint32_t i = 0; i < count; ++i)
        EXPECT_EQ(batching.batch({i}), std::max(1U, global / count + (i < global % count ? 1 : 0))) << global << " among " << count;
    }
}

TEST(FixedBatching, IsCutToWhatFits) {
  FixedBatching batching(60, {40, 20});
  batching.joined(with_limits({25, 30, 5}));
  EXPECT_EQ(batches(batching, workers(0, 3)), (Batches{25, 20, 5}));
}

/// Workers of known speed, measured update by update as a barrier strategy would.
Contribution contribution(WorkerId worker, std::uint32_t samples, double compute_s) {
  return {.worker = worker, .report = {.samples = samples, .compute = from_seconds(compute_s)}};
}

struct Measured {
  explicit Measured(std::uint32_t global_batch, std::uint32_t replan) : Measured(global_batch, {.replan = replan}) {}
  Measured(std::uint32_t global_batch, const BalancedBatching::Options& options) : batching(global_batch, options) {}

  void join(std::uint32_t first, const std::vector<cluster::Affine>& devices, const std::vector<std::uint32_t>& limits = {}) {
    std::vector<WorkerProfile> group = profiles(first, static_cast<std::uint32_t>(devices.size()));
    for (std::uint32_t i = 0; i < devices.size(); ++i) {
      speeds.emplace_back(WorkerId{first + i}, devices[i]);
      monitor.joined({first + i});
      if (!limits.empty()) group[i].device.max_batch = limits[i];
    }
    batching.joined(group);
  }
  void update() {
    for (const auto& [worker, device] : speeds) {
      const std::uint32_t batch = batching.batch(worker);
      monitor.observe(contribution(worker, batch, device.at(batch) * rng.log_normal(noise)));
    }
    batching.updated(monitor, exposed);
  }
  Exposed exposed = [](WorkerId) { return 0.0; };
  [[nodiscard]] Batches now() const {
    Batches result;
    for (const auto& [worker, device] : speeds) result.push_back(batching.batch(worker));
    return result;
  }

  BalancedBatching batching;
  Monitor monitor;
  std::vector<std::pair<WorkerId, cluster::Affine>> speeds;
  double noise = 0;
  Rng rng{1, "noise"};
};

std::vector<cluster::Affine> devices_of_speeds(const std::vector<double>& speeds) {
  std::vector<cluster::Affine> devices;
  for (const double speed : speeds) devices.push_back({0.002, 1 / (250 * speed)});
  return devices;
}

TEST(BalancedBatching, IsEqualUntilMeasuredAndRightAfterTwoPlans) {
  Measured world(128, 10);
  world.join(0, devices_of_speeds({4, 4, 2, 1}));
  EXPECT_EQ(world.now(), (Batches{32, 32, 32, 32}));
  world.update();
  const Batches first = world.now();
  EXPECT_GT(first[0], 3 * first[3]) << "one measured step is enough for a first plan";
  for (int i = 0; i < 10; ++i) world.update();
  EXPECT_EQ(world.now(), (Batches{47, 47, 23, 11})) << "now overhead and speed are told apart";
}

TEST(BalancedBatching, SettlesUnderNoise) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Measured world(128, 10);
    world.rng = Rng(seed, "noise");
    world.noise = 0.1;
    world.join(0, devices_of_speeds({4, 4, 2, 1}));
    for (int i = 0; i < 31; ++i) world.update();
    const Batches settled = world.now();
    EXPECT_EQ(std::accumulate(settled.begin(), settled.end(), 0U), 128U);
    const Batches ideal{47, 47, 23, 11};
    for (std::size_t i = 0; i < ideal.size(); ++i)
      EXPECT_NEAR(settled[i], ideal[i], 0.15 * ideal[i] + 1) << "worker " << i << ", seed " << seed;
  }
}

TEST(BalancedBatching, FollowsASlowdownWithinAFewPlans) {
  Measured world(120, 10);
  world.join(0, devices_of_speeds({2, 2}));
  for (int i = 0; i < 20; ++i) world.update();
  EXPECT_EQ(world.now(), (Batches{60, 60}));
  world.speeds[1].second.per_sample *= 4;
  for (int i = 0; i < 40; ++i) world.update();
  EXPECT_NEAR(world.now()[0], 96, 3);
}

TEST(BalancedBatching, APlanWithinTheDeadBandChangesNothing) {
  Measured world(200, 1);
  world.join(0, devices_of_speeds({1, 1}));
  world.update();
  EXPECT_EQ(world.now(), (Batches{100, 100}));
  world.speeds[0].second.per_sample *= 1.04;  // would move 2 samples of 100
  for (int i = 0; i < 30; ++i) world.update();
  EXPECT_EQ(world.now(), (Batches{100, 100}));
  world.speeds[0].second.per_sample *= 1.15;  // would move about 9
  for (int i = 0; i < 30; ++i) world.update();
  EXPECT_LT(world.now()[0], 95U);
}

TEST(BalancedBatching, PlansAgainOnlyWhenDue) {
  Measured world(100, 10);
  world.join(0, devices_of_speeds({1, 1}));
  world.update();
  world.speeds[0].second.per_sample *= 4;
  for (int i = 0; i < 9; ++i) world.update();
  EXPECT_EQ(world.now(), (Batches{50, 50}));
  world.update();
  EXPECT_LT(world.now()[0], 40U);
}

TEST(BalancedBatching, ANewWorkerGetsAnEqualShareUntilItIsMeasured) {
  Measured world(90, 10);
  world.join(0, devices_of_speeds({4, 1}));
  for (int i = 0; i < 12; ++i) world.update();
  world.join(2, devices_of_speeds({4}));
  EXPECT_EQ(world.now(), (Batches{30, 30, 30}));
  world.batching.updated(world.monitor, world.exposed);
  EXPECT_EQ(world.now(), (Batches{30, 30, 30})) << "an update without it says nothing about it";
  world.update();
  EXPECT_NEAR(world.now()[0], 40, 2);
  EXPECT_NEAR(world.now()[1], 10, 2);
  EXPECT_NEAR(world.now()[2], 40, 2);
}

TEST(BalancedBatching, TheShareOfALostWorkerIsDividedBySpeed) {
  Measured world(100, 10);
  world.join(0, devices_of_speeds({4, 4, 1}));
  for (int i = 0; i < 12; ++i) world.update();
  world.batching.left({0});
  world.speeds.erase(world.speeds.begin());
  EXPECT_EQ(world.now(), (Batches{50, 50}));
  world.update();
  EXPECT_NEAR(world.now()[0], 80, 2);
}

TEST(BalancedBatching, AFastDeviceOfLittleMemoryLeavesTheRestToTheOthers) {
  Measured world(128, 1);
  world.join(0, devices_of_speeds({4, 4, 2, 1}), {20, 0, 0, 0});
  EXPECT_EQ(world.now(), (Batches{20, 36, 36, 36}));
  for (int i = 0; i < 10; ++i) world.update();
  const Batches settled = world.now();
  EXPECT_EQ(settled[0], 20U);
  EXPECT_EQ(std::accumulate(settled.begin(), settled.end(), 0U), 128U);
  EXPECT_NEAR(settled[1], 62, 3) << "108 samples at 4:2:1";
}

TEST(BalancedBatching, EveryPlannedBatchHasASample) {
  Measured world(3, 1);
  world.join(0, devices_of_speeds({100, 100, 1, 1}));
  for (int i = 0; i < 5; ++i) world.update();
  for (const std::uint32_t batch : world.now()) EXPECT_GE(batch, 1U);
}

// Boxes ----------------------------------------------------------------------------------------------------------------------------------

/// The same with workers that also stop at their time limit.
struct TimeLimited : Measured {
  explicit TimeLimited(std::uint32_t global_batch, bool counts_communication = false)
      : Measured(global_batch, {.replan = 1, .time_limited = true, .counts_communication = counts_communication}) {}

  void update() {
    for (const auto& [worker, device] : speeds) {
      const TimeLimit time_limit = batching.time_limit(worker);
      const std::uint32_t ordered = batching.batch(worker) + time_limit.spare;
      const double stretch = rng.log_normal(noise);
      std::uint32_t done = ordered;
      while (time_limit.limit > Duration{0} && done > 1 && from_seconds(device.at(done) * stretch) > time_limit.limit) --done;
      Contribution made = contribution(worker, done, device.at(done) * stretch);
      made.time_limited = time_limit.spare > 0 || done < ordered;
      monitor.observe(made);
    }
    batching.updated(monitor, exposed);
  }
};

TEST(BatchingTimeLimits, ThereAreNoneBeforeEveryoneIsMeasured) {
  TimeLimited world(128);
  world.join(0, devices_of_speeds({4, 4, 2, 1}));
  for (const std::uint32_t id : {0U, 1U, 3U}) world.monitor.observe(contribution({id}, 32, 0.1));
  world.batching.updated(world.monitor, world.exposed);
  for (const WorkerId worker : workers(0, 4)) {
    EXPECT_EQ(world.batching.time_limit(worker).limit, Duration{0});
    EXPECT_EQ(world.batching.time_limit(worker).spare, 0U);
  }
  EXPECT_EQ(world.batching.step_s(), 0);
  world.update();
  EXPECT_GT(world.batching.time_limit({2}).limit, Duration{0});
  EXPECT_GT(world.batching.step_s(), 0);
  world.join(4, devices_of_speeds({1}));
  EXPECT_EQ(world.batching.time_limit({2}).limit, Duration{0}) << "a new worker is not measured yet";
}

TEST(BatchingTimeLimits, AreNoneUnlessWanted) {
  Measured world(128, 1);
  world.join(0, devices_of_speeds({4, 1}));
  for (int i = 0; i < 5; ++i) world.update();
  EXPECT_EQ(world.batching.time_limit({0}).limit, Duration{0});
  EXPECT_GT(world.batching.step_s(), 0) << "the plan's time is known all the same";
}

TEST(BatchingTimeLimits, OnASteadyClusterAreAFifthLateWithoutSpare) {
  TimeLimited world(128);
  world.join(0, devices_of_speeds({4, 4, 2, 1}));
  for (int i = 0; i < 12; ++i) world.update();
  double last = 0;
  for (const auto& [worker, device] : world.speeds) last = std::max(last, device.at(world.batching.batch(worker)));
  for (const WorkerId worker : workers(0, 4)) {
    EXPECT_EQ(world.batching.time_limit(worker).spare, 0U);
    EXPECT_NEAR(seconds(world.batching.time_limit(worker).limit), 1.2 * last, 1e-5);
    EXPECT_EQ(world.batching.time_limit(worker).micro, std::max(1U, world.batching.batch(worker) / 16));
  }
}

TEST(BatchingTimeLimits, OnAJitteryClusterHaveSpareAndEndTogether) {
  TimeLimited world(128);
  world.noise = 0.1;
  world.join(0, devices_of_speeds({4, 4, 2, 1}));
  for (int i = 0; i < 40; ++i) world.update();
  const Duration end = world.batching.time_limit({0}).limit;
  EXPECT_NEAR(seconds(end), 0.049, 0.2 * 0.049) << "the planned moment, not a fifth later";
  EXPECT_NEAR(seconds(end), world.batching.step_s(), 1e-9);
  for (const WorkerId worker : workers(0, 4)) {
    const TimeLimit time_limit = world.batching.time_limit(worker);
    EXPECT_EQ(time_limit.limit, end);
    EXPECT_GT(time_limit.spare, 0U);
    EXPECT_LE(time_limit.spare, (world.batching.batch(worker) + 1) / 2);
  }
}

TEST(BatchingTimeLimits, SpareNeverGoesBeyondMemory) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    TimeLimited world(128);
    world.rng = Rng(seed, "noise");
    world.noise = 0.3;
    const std::vector<std::uint32_t> limits{20, 50, 0, 1};
    world.join(0, devices_of_speeds({4, 4, 2, 1}), limits);
    for (int i = 0; i < 30; ++i) {
      world.update();
      for (const std::uint32_t id : {0U, 1U, 3U})
        ASSERT_LE(world.batching.batch({id}) + world.batching.time_limit({id}).spare, limits[id]) << "worker " << id << ", seed " << seed;
    }
    EXPECT_EQ(world.batching.time_limit({0}).spare, 0U) << "it is full already";
    EXPECT_GT(world.batching.time_limit({2}).spare, 0U);
  }
}

TEST(BalancedBatching, ARestrictedWorkerLeavesTheRestToOthers) {
  TimeLimited world(128);
  world.join(0, devices_of_speeds({4, 4, 2, 1}));
  for (int i = 0; i < 12; ++i) world.update();
  world.batching.restricted({0}, 10);
  EXPECT_EQ(world.now(), (Batches{10, 40, 39, 39})) << "at once, though by speed only with the next update";
  EXPECT_EQ(world.batching.time_limit({1}).limit, Duration{0}) << "boxes of another plan are over";
  world.update();
  EXPECT_EQ(world.now()[0], 10U);
  EXPECT_NEAR(world.now()[1], 67, 3) << "118 samples at 4:2:1";
  const Batches settled = world.now();
  EXPECT_EQ(std::accumulate(settled.begin(), settled.end(), 0U), 128U);
  world.batching.restricted({0}, 30);
  EXPECT_EQ(world.now()[0], 10U) << "what it could not hold once it cannot hold";
}

TEST(BalancedBatching, ASlowLinkCountsAsPartOfTheStepIfWanted) {
  for (const bool counts : {false, true}) {
    TimeLimited world(120, counts);
    world.join(0, devices_of_speeds({2, 2}));
    world.exposed = [](WorkerId worker) { return worker == WorkerId{1} ? 0.04 : 0.0; };
    for (int i = 0; i < 12; ++i) world.update();
    EXPECT_EQ(world.now(), counts ? (Batches{70, 50}) : (Batches{60, 60})) << "0.04 s are 20 samples";
    EXPECT_EQ(world.batching.time_limit({0}).limit - world.batching.time_limit({1}).limit, from_seconds(counts ? 0.04 : 0))
        << "it computes for less time";
  }
}

TEST(BalancedBatching, AWorkerSlowedFourfoldSettlesWithinThreePlans) {
  for (const double noise : {0.0, 0.03})
    for (std::uint32_t slowed = 0; slowed < 4; ++slowed) {
      TimeLimited world(256);
      world.noise = noise;
      world.join(0, devices_of_speeds({4, 4, 2, 1}));
      for (int i = 0; i < 30; ++i) world.update();
      for (const double factor : {4.0, 0.25}) {
        auto& device = world.speeds[slowed].second;
        device = {device.fixed * factor, device.per_sample * factor};
        for (int i = 0; i < 3; ++i) world.update();
        std::vector<cluster::Affine> devices;
        for (const auto& [worker, speed] : world.speeds) devices.push_back(speed);
        const Batches ideal = cluster::finish_together(devices, 256, 1);
        for (std::size_t i = 0; i < ideal.size(); ++i)
          EXPECT_NEAR(world.now()[i], ideal[i], 0.1 * ideal[i] + 1) << "worker " << i << ", slowed " << slowed << ", noise " << noise;
      }
    }
}

}  // namespace
}  // namespace motley::policy
