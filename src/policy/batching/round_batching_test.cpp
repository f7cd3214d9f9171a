#include "policy/batching/round_batching.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace motley::policy {
namespace {

/// A cluster of devices whose speed is measured exactly, two batches each so that overhead is told from slope.
struct Cluster {
  Cluster(std::uint32_t global_batch, const std::vector<double>& per_second, double overhead_s = 0, std::vector<std::uint32_t> limits = {})
      : batching(global_batch) {
    std::vector<WorkerProfile> all;
    for (std::uint32_t w = 0; w < per_second.size(); ++w) {
      monitor.joined({w});
      all.push_back({.worker = {w}, .device = {.max_batch = limits.empty() ? 0 : limits[w]}});
      devices.push_back({overhead_s, 1 / per_second[w]});
    }
    batching.joined(all);
  }
  void measure() {
    for (std::uint32_t w = 0; w < devices.size(); ++w)
      for (const std::uint32_t samples : {10U, 100U, 10U, 100U}) {
        monitor.observe({.worker = {w}, .report = {.samples = samples, .compute = from_seconds(devices[w].at(samples))}});
      }
  }
  void plan(std::uint32_t interval) {
    batching.interval(interval);
    batching.updated(monitor, [](WorkerId) { return 0.0; });
  }
  [[nodiscard]] double round_s(std::uint32_t w) const { return batching.steps({w}) * devices[w].at(batching.batch({w})); }
  [[nodiscard]] std::vector<std::uint32_t> steps() const {
    std::vector<std::uint32_t> made;
    for (std::uint32_t w = 0; w < devices.size(); ++w) made.push_back(batching.steps({w}));
    return made;
  }
  [[nodiscard]] std::uint64_t samples() const {
    std::uint64_t sum = 0;
    for (std::uint32_t w = 0; w < devices.size(); ++w) sum += std::uint64_t{batching.steps({w})} * batching.batch({w});
    return sum;
  }
  RoundBatching batching;
  Monitor monitor;
  std::vector<cluster::Affine> devices;
};

TEST(RoundBatching, FasterWorkersTakeMoreSteps) {
  Cluster cluster(256, {400, 400, 200, 100});
  cluster.measure();
  cluster.plan(11);
  EXPECT_EQ(cluster.steps(), (std::vector<std::uint32_t>{16, 16, 8, 4}));
  EXPECT_EQ(cluster.samples(), 11U * 256U) << "all rounds together are so many global batches";
  EXPECT_DOUBLE_EQ(cluster.batching.mean_steps(), 11);
}

TEST(RoundBatching, AllRoundsEndTogether) {
  for (const std::uint32_t interval : {2U, 3U, 5U, 8U, 16U, 31U}) {
    Cluster cluster(128, {2000, 1000, 1000, 500, 250, 130}, 0.002);
    cluster.measure();
    cluster.plan(interval);
    for (std::uint32_t w = 0; w < 6; ++w)
      EXPECT_NEAR(cluster.round_s(w), cluster.batching.step_s(), 0.03 * cluster.batching.step_s() + 0.5 * cluster.devices[w].per_sample)
          << "interval " << interval << ", worker " << w;
  }
}

TEST(RoundBatching, NoWorkerRunsAheadOverManyRounds) {
  for (const std::uint32_t interval : {3U, 4U, 7U, 16U}) {
    Cluster cluster(128, {2000, 1000, 1000, 500, 250, 130}, 0.002);
    cluster.measure();
    std::vector<double> computed_s(6);
    double planned = 0;
    for (int round = 0; round < 100; ++round) {
      cluster.plan(interval);
      planned += cluster.batching.step_s();
      for (std::uint32_t w = 0; w < 6; ++w) computed_s[w] += cluster.round_s(w);
    }
    for (std::uint32_t w = 0; w < 6; ++w)
      EXPECT_NEAR(computed_s[w], planned, 0.2 * cluster.batching.step_s())
          << "interval " << interval << ", worker " << w << ", after 100 rounds";
  }
}

// Rounds overlap: all begin the next when they are done with the last, unless somebody is a whole round behind.
TEST(RoundBatching, AWorkerThatFellBehindCatchesUp) {
  Cluster cluster(256, {400, 400, 200, 100});
  cluster.measure();
  cluster.plan(12);
  std::vector<double> ends{1, 1, 1, 1 + cluster.batching.step_s()};  // the slowest by a whole round
  double widest = 0;
  for (int round = 0; round < 40; ++round) {
    std::vector<Contribution> members(4);
    for (std::uint32_t w = 0; w < 4; ++w) {
      members[w].worker = {w};
      members[w].arrived = Instant(from_seconds(ends[w]));
    }
    cluster.batching.applied(members);
    cluster.plan(12);
    for (std::uint32_t w = 0; w < 4; ++w) ends[w] += cluster.round_s(w);
    widest = *std::max_element(ends.begin(), ends.end()) - *std::min_element(ends.begin(), ends.end());
  }
  EXPECT_LT(widest, 0.3 * cluster.batching.step_s());
}

TEST(RoundBatching, SmallDelaysAreNotCorrected) {
  Cluster cluster(256, {400, 400, 200, 100});
  cluster.measure();
  cluster.plan(12);
  const auto batch = cluster.batching.batch({3});
  std::vector<Contribution> members(4);
  for (std::uint32_t w = 0; w < 4; ++w) {
    members[w].worker = {w};
    members[w].arrived = Instant(from_seconds(w == 3 ? 1 + 0.1 * cluster.batching.step_s() : 1));
  }
  cluster.batching.applied(members);
  cluster.plan(12);
  EXPECT_EQ(cluster.batching.batch({3}), batch);
}

TEST(RoundBatching, AGpuTakesStepsOfItsShareOfTheGlobalBatch) {
  RoundBatching batching(1024);
  Monitor monitor;
  std::vector<WorkerProfile> all;
  for (std::uint32_t w = 0; w < 4; ++w) {
    monitor.joined({w});
    all.push_back({.worker = {w}, .device = {.batch_multiple = w < 2 ? 8U : 1U}});  // two GPUs, two CPUs
  }
  batching.joined(all);
  const std::vector<double> speeds{20000, 10000, 50, 50};
  for (std::uint32_t w = 0; w < 4; ++w) {
    monitor.observe({.worker = {w}, .report = {.samples = 256, .compute = from_seconds(256 / speeds[w])}});
  }
  batching.interval(12);
  batching.updated(monitor, [](WorkerId) { return 0.0; });
  EXPECT_NEAR(batching.batch({0}), 680, 8);
  EXPECT_NEAR(batching.batch({1}), 340, 8);
  EXPECT_EQ(batching.steps({0}), 12U);
  EXPECT_EQ(batching.steps({2}), 1U);
  EXPECT_NEAR(batching.batch({2}), 20, 2) << "one step that ends when theirs do";
}

TEST(RoundBatching, AGpuKeepsItsBatchSize) {
  RoundBatching batching(1024);
  Monitor monitor;
  std::vector<WorkerProfile> all;
  for (std::uint32_t w = 0; w < 2; ++w) {
    monitor.joined({w});
    all.push_back({.worker = {w}, .device = {.batch_multiple = 8}});
  }
  batching.joined(all);
  const std::vector<double> speeds{20000, 7000};
  std::set<std::uint32_t> sizes;
  std::vector<double> computed_s(2);
  double planned = 0;
  for (int round = 0; round < 100; ++round) {
    for (std::uint32_t w = 0; w < 2; ++w) {
      const std::uint32_t samples = batching.batch({w}) * batching.steps({w});
      const double jitter = 1 + 0.03 * ((round * 7 + static_cast<int>(w) * 3) % 5 - 2);
      monitor.observe(
          {.worker = {w},
           .report = {.samples = samples, .local_steps = batching.steps({w}), .compute = from_seconds(samples / speeds[w] * jitter)}});
    }
    batching.interval(12);
    batching.updated(monitor, [](WorkerId) { return 0.0; });
    if (round < 5) continue;
    sizes.insert(batching.batch({0}));
    planned += batching.step_s();
    for (std::uint32_t w = 0; w < 2; ++w) computed_s[w] += batching.batch({w}) * batching.steps({w}) / speeds[w];
  }
  EXPECT_EQ(sizes.size(), 1U);
  for (std::uint32_t w = 0; w < 2; ++w) EXPECT_NEAR(computed_s[w] / planned, 1, 0.02) << "remainders of whole steps are carried over";
}

TEST(RoundBatching, AnIntervalOfOneIsFinishTogether) {
  Cluster cluster(128, {400, 200, 200});
  cluster.measure();
  cluster.plan(1);
  EXPECT_EQ(cluster.steps(), (std::vector<std::uint32_t>{1, 1, 1}));
  EXPECT_EQ(cluster.samples(), 128U);
  EXPECT_EQ(cluster.batching.batch({0}), 64U);
  EXPECT_EQ(cluster.batching.rate_scale(), 1);
}

TEST(RoundBatching, NoLocalStepsUntilAllWorkersAreMeasured) {
  Cluster cluster(128, {400, 200});
  cluster.plan(8);
  EXPECT_EQ(cluster.steps(), (std::vector<std::uint32_t>{1, 1}));
  cluster.measure();
  cluster.plan(8);
  EXPECT_GT(cluster.batching.steps({0}), 1U);
  cluster.monitor.joined({2});
  cluster.devices.push_back({0, 0.01});
  cluster.batching.joined(std::vector<WorkerProfile>{{.worker = {2}}});
  EXPECT_EQ(cluster.steps(), (std::vector<std::uint32_t>{1, 1, 1})) << "somebody new";
}

TEST(RoundBatching, ABatchFitsTheMemoryOfItsWorker) {
  Cluster cluster(128, {400, 400}, 0, {0, 20});
  cluster.measure();
  cluster.plan(8);
  EXPECT_LE(cluster.batching.batch({1}), 20U);
  EXPECT_NEAR(cluster.round_s(1) / cluster.round_s(0), 1, 0.05) << "so it takes more steps";
}

// A sample moves the model by rate * H_i / sum(H_j b_j) in its worker's round; its mean over the samples is rate/B under other strategies.
TEST(RoundBatching, ASampleChangesTheModelAsUnderOtherStrategies) {
  Cluster cluster(128, {2000, 1000, 500, 500}, 0.002);
  cluster.measure();
  cluster.plan(16);
  const auto all = static_cast<double>(cluster.samples());
  double update_norm = 0;
  for (std::uint32_t w = 0; w < 4; ++w) {
    const double samples = cluster.batching.steps({w}) * cluster.batching.batch({w});
    update_norm += samples / all * cluster.batching.rate_scale() * cluster.batching.steps({w}) / all;
  }
  EXPECT_NEAR(update_norm, 1.0 / 128, 1e-9);
}

TEST(RoundBatching, BatchesAreMultiplesAndRemaindersAreCarriedOver) {
  RoundBatching batching(1024);
  Monitor monitor;
  std::vector<WorkerProfile> all;
  const std::vector<double> per_second{22'000, 17'000, 11'000, 5'300};
  for (std::uint32_t w = 0; w < 4; ++w) {
    monitor.joined({w});
    all.push_back({.worker = {w}, .device = {.batch_multiple = 8}});
  }
  batching.joined(all);
  std::vector<double> done(4);
  for (int round = 0; round < 40; ++round) {
    for (std::uint32_t w = 0; w < 4; ++w) {
      monitor.observe({.worker = {w}, .report = {.samples = 100, .compute = from_seconds(100 / per_second[w])}});
    }
    batching.interval(6);
    batching.updated(monitor, [](WorkerId) { return 0.0; });
    for (std::uint32_t w = 0; w < 4; ++w) {
      EXPECT_EQ(batching.batch({w}) % 8, 0U);
      done[w] += batching.steps({w}) * batching.batch({w}) / per_second[w];
    }
  }
  for (const double seconds : done) EXPECT_NEAR(seconds, done[0], 0.01 * done[0]);
}

}  // namespace
}  // namespace motley::policy
