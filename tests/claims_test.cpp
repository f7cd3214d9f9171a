// Workers that report false compute times in order to be given more samples than they can compute. The trace shows how many samples each
// computed.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "policy/strategies.h"
#include "sim/world.h"
#include "trace/event.h"

namespace motley {
namespace {

constexpr std::uint32_t global_batch = 128;
constexpr std::uint64_t samples = 40'000;
constexpr std::uint32_t nodes = 4;
constexpr double fair = 1.0 / nodes;

using Claims = std::function<void(StepReport&)>;

class Counts : public trace::Sink {
 public:
  void on_event(const trace::Event& e) override {
    if (const auto* joined = e.as<trace::Joined>()) node_[joined->worker] = joined->node;
    if (const auto* counted = e.as<trace::Counted>()) counted_[node_.at(counted->worker)] += counted->samples;
  }
  [[nodiscard]] double share(std::uint64_t node) { return static_cast<double>(counted_[node]) / samples; }

 private:
  std::map<WorkerId, std::uint64_t> node_;
  std::map<std::uint64_t, std::uint64_t> counted_;
};

/// The share of all samples that is counted for node 0, which differs from the others only in its reports.
double share_of_false_claim(const std::string& strategy, const Claims& claims) {
  sim::WorldOptions world;
  for (std::uint32_t n = 0; n < nodes; ++n) {
    cluster::Node node;
    node.name = "n" + std::to_string(n);
    node.samples_per_second = 500;
    node.overhead = from_seconds(0.002);
    node.jitter = 0.05;
    node.link = {from_seconds(2e-4), 2e6, 2e6};
    world.cluster.nodes.push_back(node);
  }
  world.cluster.server_nic = {from_seconds(1e-4), 4e6, 4e6};
  world.layout = store::cut(std::vector<store::TensorPlace>{{0, 4000, TensorKind::parameter}}, 1000, 1);
  world.chief.epoch_samples = world.chief.total_samples = samples;
  world.chief.global_batch = global_batch;
  world.chief.evaluate_every = samples;
  world.chief.quorum = nodes;
  world.claims = [&](std::uint32_t node, wire::Contributed& reported) {
    if (node == 0 && claims) claims(reported.report);
  };
  policy::StrategySpec spec;
  spec.kind = strategy;
  auto made = policy::make_strategy(spec, {global_batch, 0.9, {16'000, 8'000, 4'000, 2'000, 1'000}});
  check(made.ok(), "the strategy is one of the table");
  Counts counts;
  sim::NoNumbers none;
  const auto outcome = sim::World(world, std::move(*made), policy::LrSchedule({}, global_batch, samples, samples), none, counts).run();
  EXPECT_EQ(outcome.why, protocol::EndReason::every_sample_counted);
  return counts.share(0);
}

class Claimed : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(UnderEachStrategy, Claimed, testing::Values("lb-bsp", "hps", "adaptive", "grouped", "multistep"),
                         [](const auto& strategy) {
                           std::string name = strategy.param;
                           name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
                           return name;
                         });

TEST_P(Claimed, True_times_get_a_fair_share) { EXPECT_NEAR(share_of_false_claim(GetParam(), {}), fair, 0.1 * fair); }

TEST_P(Claimed, Zero_time_gets_at_most_twice_a_fair_share) {
  for (const Duration claimed : {Duration{0}, Duration{1}, Duration{-1}, Duration::min()})
    EXPECT_LT(share_of_false_claim(GetParam(), [&](StepReport& reported) { reported.compute = claimed; }), 2 * fair)
        << claimed.count() << " ns";
}

TEST_P(Claimed, NoTimeBecauseAllWasWaitingGetsLittleMore) {
  const auto waited = [](StepReport& reported) {
    reported.pull += reported.compute;
    reported.compute = {};
  };
  EXPECT_LT(share_of_false_claim(GetParam(), waited), 3 * fair);
}

TEST_P(Claimed, Huge_times_harm_no_other_worker) {
  for (const Duration claimed : {Duration::min(), Duration::max()}) {
    const auto absurd = [&](StepReport& reported) { reported.compute = reported.pull = reported.stalled = claimed; };
    EXPECT_LT(share_of_false_claim(GetParam(), absurd), 3 * fair) << claimed.count() << " ns";
  }
}

}  // namespace
}  // namespace motley
