// Devices that hang: they compute nothing while their processes still send heartbeats. Under every strategy a worker with a hung device is
// expelled for that reason, other workers get its samples, and training completes. The checkers read the trace only.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "checkers.h"
#include "policy/strategies.h"
#include "sim/world.h"
#include "trace/events_for_tests.h"
#include "trace/sinks.h"

namespace motley {
namespace {

using protocol::LeaveReason;

constexpr std::uint32_t global_batch = 64;
constexpr std::uint64_t samples = 20'000;

/// Four nodes, the last of them four times slower. A run takes about 9 s.
sim::WorldOptions four_nodes(double step_limit_s, std::uint32_t servers = 1) {
  sim::WorldOptions world;
  for (std::uint32_t n = 0; n < 4; ++n) {
    cluster::Node node;
    node.name = "n" + std::to_string(n);
    node.samples_per_second = n < 3 ? 1000 : 250;
    node.overhead = from_seconds(0.002);
    node.jitter = 0.1;
    node.link = {from_seconds(2e-4), 4e6, 4e6};
    world.cluster.nodes.push_back(node);
  }
  world.cluster.server_nic = {from_seconds(1e-4), 1e7, 1e7};
  world.cluster.servers = world.chief.servers = servers;
  world.layout = store::cut(std::vector<store::TensorPlace>{{0, 2000, TensorKind::parameter}}, 500, servers);
  world.chief.epoch_samples = 5000;
  world.chief.total_samples = samples;
  world.chief.global_batch = global_batch;
  world.chief.evaluate_every = samples;
  world.chief.quorum = 4;
  world.chief.step_limit = world.cluster.step_limit = from_seconds(step_limit_s);
  world.max_events = 3'000'000;
  return world;
}

cluster::Fault hang(double at_s, std::uint32_t node, Duration lasting = cluster::forever) {
  return {at_seconds(at_s), cluster::FaultKind::hang, NodeId{node}, lasting, 1};
}

struct Watched {
  sim::TrainingOutcome outcome;
  std::vector<trace::Event> events;
  template <class T>
  [[nodiscard]] std::vector<trace::Timed<T>> of() const {
    return trace::all_of<T>(events);
  }
  [[nodiscard]] std::uint64_t node_of(WorkerId worker) const {
    for (const trace::Joined& e : of<trace::Joined>())
      if (e.worker == worker) return e.node;
    return ~std::uint64_t{0};
  }
  /// Exactly this node left, for this reason.
  void expect_only_left(std::uint32_t node, std::size_t times) const {
    EXPECT_EQ(of<trace::Left>().size(), times);
    for (const trace::Left& e : of<trace::Left>()) {
      EXPECT_EQ(node_of(e.worker), node);
      EXPECT_EQ(e.why, static_cast<std::uint8_t>(LeaveReason::step_too_long));
    }
  }
};

Watched run(const sim::WorldOptions& world, std::string_view strategy) {
  policy::StrategySpec spec;
  spec.kind = std::string(strategy);
  auto made = policy::make_strategy(spec, {global_batch, 0.9});
  check(made.ok(), "the strategy is one of the table");
  checkers::EverySampleOnce once{world.chief.epoch_samples, world.chief.total_samples};
  checkers::VersionsOnlyGrow versions;
  checkers::FormerMembersFenced fenced;
  checkers::TimeOnlyGrows time;
  trace::Recorder recorder;
  trace::Tee tee({&once, &versions, &fenced, &time, &recorder});
  sim::NoNumbers none;
  const policy::LrSchedule schedule({}, global_batch, world.chief.epoch_samples, world.chief.total_samples);
  Watched watched;
  watched.outcome = sim::World(world, std::move(*made), schedule, none, tee).run();
  watched.events = recorder.events();
  for (checkers::Checker* checker : std::initializer_list<checkers::Checker*>{&once, &versions, &fenced, &time}) {
    checker->closed();
    for (const checkers::Complaint& complaint : checker->complaints())
      ADD_FAILURE() << strategy << ", " << checker->name() << ": " << complaint;
  }
  EXPECT_EQ(watched.outcome.why, protocol::EndReason::every_sample_counted) << strategy;
  return watched;
}

class Hangs : public testing::TestWithParam<std::string_view> {};
INSTANTIATE_TEST_SUITE_P(UnderEachStrategy, Hangs, testing::ValuesIn(policy::strategy_names().begin(), policy::strategy_names().end()),
                         [](const auto& strategy) {
                           std::string name(strategy.param);
                           name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
                           return name;
                         });

TEST_P(Hangs, Hung_worker_is_expelled_and_training_ends) {
  for (const std::uint32_t node : {0U, 3U})
    for (const double at_s : {0.05, 1.0, 2.345}) {
      SCOPED_TRACE(testing::Message() << "node " << node << " at " << at_s << " s");
      sim::WorldOptions world = four_nodes(2);
      world.cluster.faults = {hang(at_s, node)};
      const Watched watched = run(world, GetParam());
      watched.expect_only_left(node, 1);
      EXPECT_EQ(watched.of<trace::Joined>().size(), 4U) << "its process does not rejoin while its device hangs";
      const double known = at_s > 0.5 ? 2 : 20;  // ten times the limit before its first step has ended
      EXPECT_LT(seconds(watched.of<trace::Left>()[0].at), at_s + known + 8)
          << "the worker is expelled soon, whatever is cancelled and ordered meanwhile";
    }
}

TEST_P(Hangs, Recovered_worker_rejoins_under_a_new_id) {
  sim::WorldOptions world = four_nodes(0.5);
  world.cluster.faults = {hang(1, 1, from_seconds(3))};
  world.cluster.heartbeat = from_seconds(0.1);
  const Watched watched = run(world, GetParam());
  watched.expect_only_left(1, 1);
  const auto joined = watched.of<trace::Joined>();
  ASSERT_EQ(joined.size(), 5U);
  EXPECT_EQ(joined[4].node, 1U);
  EXPECT_GE(joined[4].at, at_seconds(4)) << "not before its device computes again";
}

TEST_P(Hangs, Hang_within_the_limit_is_waited_for) {
  sim::WorldOptions world = four_nodes(2);
  world.cluster.faults = {hang(1, 0, from_seconds(1.5)), hang(4, 3, from_seconds(1.5))};
  run(world, GetParam()).expect_only_left(0, 0);
}

TEST_P(Hangs, Worker_is_expelled_also_with_several_servers) {
  sim::WorldOptions world = four_nodes(2, 3);
  world.cluster.faults = {hang(1.5, 2)};
  run(world, GetParam()).expect_only_left(2, 1);
}

TEST_P(Hangs, Hang_of_all_workers_ends_training) {
  sim::WorldOptions world = four_nodes(2);
  world.chief.empty_deadline = from_seconds(5);
  for (std::uint32_t n = 0; n < 4; ++n) world.cluster.faults.push_back(hang(1, n));
  policy::StrategySpec spec;
  spec.kind = std::string(GetParam());
  auto made = policy::make_strategy(spec, {global_batch, 0.9});
  sim::NoNumbers none;
  trace::Recorder recorder;
  const auto outcome = sim::World(world, std::move(*made), policy::LrSchedule({}, global_batch, 5000, samples), none, recorder).run();
  EXPECT_EQ(outcome.why, protocol::EndReason::nobody_left);
}

}  // namespace
}  // namespace motley
