// A simulated cluster against times worked out by hand, and what the faults do to one node. Random worlds: tests/worlds_test.cpp.
#include "sim/world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "policy/strategies.h"
#include "trace/events_for_tests.h"
#include "trace/sinks.h"
#include "trace/summary.h"

namespace motley::sim {
namespace {

using cluster::FaultKind;

constexpr double latency_s = 0.0002;
constexpr double slice_s = 0.01;  // of the one slice over a worker's link
constexpr double nic_links = 4;
constexpr std::uint32_t batch = 128;

/// Speed 1 is 250 samples a second with 2 ms of overhead; one slice of 4000 bytes; the server's NIC carries four links.
WorldOptions cluster_of(const std::vector<double>& speeds, std::uint64_t updates) {
  WorldOptions world;
  cluster::Node node;
  node.overhead = from_seconds(0.002);
  node.link = {from_seconds(latency_s), 4000 / slice_s, 4000 / slice_s};
  for (const double speed : speeds) {
    node.name = "n" + std::to_string(world.cluster.nodes.size());
    node.samples_per_second = 250 * speed;
    world.cluster.nodes.push_back(node);
  }
  world.cluster.server_nic = {from_seconds(latency_s), nic_links * 4000 / slice_s, nic_links * 4000 / slice_s};
  const store::TensorPlace all{0, 1000, TensorKind::parameter};
  world.layout = store::cut({&all, 1}, 1000, 1);
  world.chief.epoch_samples = world.chief.total_samples = world.chief.evaluate_every = updates * batch;
  world.chief.quorum = static_cast<std::uint32_t>(speeds.size());
  world.max_events = 1'000'000;
  return world;
}

struct Ran {
  TrainingOutcome outcome;
  std::vector<trace::Event> events;
  trace::Summary summary;
  std::string fingerprint;
  template <class T>
  [[nodiscard]] std::vector<trace::Timed<T>> of() const {
    return trace::all_of<T>(events);
  }
};

Ran run(const WorldOptions& options, const std::string& strategy, Numbers& numbers) {
  auto made = policy::make_strategy({strategy, {}, {}}, {batch, 0.9});
  check(made.ok(), "the test names a strategy that exists");
  Ran ran;
  trace::Recorder recorder;
  trace::Writer writer;
  trace::Tee tee({&recorder, &ran.summary, &writer});
  ran.outcome = World(options, std::move(*made), policy::LrSchedule({}, batch, options.chief.epoch_samples, options.chief.total_samples),
                      numbers, tee)
                    .run();
  ran.events = recorder.events();
  ran.fingerprint = writer.finish();
  return ran;
}

Ran run(const WorldOptions& options, const std::string& strategy = "bsp") {
  NoNumbers none;
  return run(options, strategy, none);
}

cluster::Fault fault(FaultKind kind, double at_s, double lasting_s = 0, std::uint32_t node = 0) {
  return {at_seconds(at_s), kind, NodeId{node}, from_seconds(lasting_s), 1};
}

// By hand: 32 samples each. A step of the slowest (the fourth): 32/250 + 0.002 of computing, its push alone on the link, and a pull that
// leaves the NIC after the three others' (a quarter of a slice's time each).
TEST(World, ABspStepOnUnequalWorkersTakesWhatItTakesByHand) {
  constexpr std::uint64_t updates = 50;
  const Ran ran = run(cluster_of({4, 4, 2, 1}, updates));
  const std::vector<double> compute{0.034, 0.034, 0.066, 0.130};
  const double send = latency_s + slice_s;
  const auto receive = [](double place) { return place * slice_s / nic_links + latency_s + slice_s; };
  const double step = receive(3) + compute[3] + send;
  const double joining = latency_s;
  EXPECT_NEAR(seconds(ran.outcome.ended), joining + updates * step, 1e-6);
  EXPECT_EQ(ran.outcome.updates, updates);
  EXPECT_EQ(ran.outcome.samples, updates * batch);
  EXPECT_EQ(ran.outcome.bytes_pushed, updates * 4 * 4000);
  EXPECT_EQ(ran.outcome.bytes_pulled, updates * 4 * 4000);

  double waiting = 0;
  for (std::size_t w = 0; w < 4; ++w) waiting += step - receive(static_cast<double>(w)) - compute[w] - send;
  EXPECT_NEAR(ran.summary.time().wait_s / ran.summary.time().total(), waiting / (4 * step), 0.02 * waiting / (4 * step));
}

/// Two slices, the second read after a sixth and made after two thirds of a step.
WorldOptions streaming_cluster(double speed, std::uint64_t updates) {
  WorldOptions world = cluster_of({speed}, updates);
  const std::vector<store::TensorPlace> tensors{{0, 1000, TensorKind::parameter}, {1000, 1000, TensorKind::parameter}};
  world.layout = store::cut(tensors, 1000, 1);
  world.layer_timing = store::layer_timing(world.layout, tensors, std::vector<std::uint32_t>{0, 1}, std::vector<double>{1, 1});
  return world;
}

TEST(World, ADeviceThatStreamsBeginsWithTheFirstSliceAndEndsWithTheLastInItsHands) {
  constexpr std::uint64_t updates = 10;
  const double compute = 0.002 + batch / 250.0;  // so long that the second slice is here when it is read, and gone when the first is made
  const Ran ran = run(streaming_cluster(1, updates));
  const double step = latency_s + slice_s + compute + slice_s + latency_s;
  EXPECT_NEAR(seconds(ran.outcome.ended), latency_s + updates * step, 1e-6);
  EXPECT_NEAR(ran.summary.time().compute_s, updates * compute, 1e-6);
}

TEST(World, ADeviceThatStreamsStandsStillForWhatItReads) {
  constexpr std::uint64_t updates = 10;
  const double compute = 0.002 + batch / 10000.0;
  const double stalled = slice_s - compute / 6;
  const double second_is_out = 2 * compute / 3 + slice_s;  // the link is busy with it when the first is made
  ASSERT_GT(stalled, 0);
  ASSERT_GT(second_is_out, compute);
  const Ran ran = run(streaming_cluster(40, updates));
  const double step = latency_s + slice_s + stalled + second_is_out + slice_s + latency_s;
  EXPECT_NEAR(seconds(ran.outcome.ended), latency_s + updates * step, 1e-6);
  EXPECT_NEAR(ran.summary.time().compute_s, updates * compute, 1e-6) << "standing still is not computing";
  EXPECT_NEAR(seconds(ran.of<trace::ComputeEnded>().at(3).stalled), stalled, 1e-8);
}

// Three slices, each read a ninth of the step after the one before. First in, first out, what is sent first is in flight before the others
// are there to be chosen from; of those the last layer goes first, so that the second slice comes last.
TEST(World, WhatForwardNeedsFirstGoesFirst) {
  constexpr std::uint64_t updates = 10;
  const double compute = 0.002 + batch / 10000.0;
  const double pushes = 5 * compute / 9 + 3 * slice_s;  // the last layer is made after five ninths; then the link is busy to the end
  for (const bool backward_order : {false, true}) {
    WorldOptions world = cluster_of({40}, updates);
    const std::vector<store::TensorPlace> tensors{
        {0, 1000, TensorKind::parameter}, {1000, 1000, TensorKind::parameter}, {2000, 1000, TensorKind::parameter}};
    world.layout = store::cut(tensors, 1000, 1, {.whole_tensors = false, .backward_order = backward_order});
    world.layer_timing = store::layer_timing(world.layout, tensors, std::vector<std::uint32_t>{0, 1, 2}, std::vector<double>{1, 1, 1});
    const double stalled = 2 * slice_s - (backward_order ? 1 : 2) * compute / 9;
    const double step = latency_s + slice_s + stalled + pushes + latency_s;
    EXPECT_NEAR(seconds(run(world).outcome.ended), latency_s + updates * step, 1e-6)
        << (backward_order ? "first in, first out" : "by need");
  }
}

// Both servers' cards are as wide as the worker's link. What is far away is read last, when its way no longer shows.
TEST(World, SlicesPlacedByDistanceHideHowFarAwayAServerIs) {
  const auto time_of = [](bool placed) {
    WorldOptions world = cluster_of({4}, 20);
    world.cluster.servers = world.chief.servers = 2;
    world.cluster.server_distances = {from_seconds(0), from_seconds(0.01)};
    std::vector<store::TensorPlace> tensors;
    std::vector<std::uint32_t> blocks;
    for (std::uint32_t i = 0; i < 8; ++i) {
      tensors.push_back({1000 * i, 1000, TensorKind::parameter});
      blocks.push_back(i);
    }
    world.layout = store::cut(tensors, 1000, 2);
    if (placed) store::place(world.layout, store::head_starts(std::vector<double>{0, 0.01}, cluster::receive_bandwidth(world.cluster)));
    world.layer_timing = store::layer_timing(world.layout, tensors, blocks, std::vector<double>(8, 1.0));
    return seconds(run(world).outcome.ended);
  };
  EXPECT_LT(time_of(true), time_of(false) - 20 * 0.002) << "milliseconds of every step";
}

TEST(World, ADeviceThatStreamsLosesNothingWhenItIsKilledOrPaused) {
  WorldOptions world = streaming_cluster(1, 20);
  world.cluster.nodes.push_back(world.cluster.nodes.front());
  world.chief.quorum = 2;
  world.cluster.faults = {fault(FaultKind::pause, 1.1, 0.7), fault(FaultKind::kill, 3.3), fault(FaultKind::join, 4)};
  const Ran ran = run(world);
  EXPECT_EQ(ran.outcome.samples, 20U * batch);
  EXPECT_EQ(ran.of<trace::Joined>().size(), 3U);
}

TEST(World, WithoutWaitingEveryWorkerGoesAtItsOwnPace) {
  const Ran ran = run(cluster_of({4, 1}, 1000), "asp");  // 64 samples each
  const std::vector<trace::WorkerSummary> workers = ran.summary.workers();
  const double fast_step = 2 * (latency_s + slice_s) + 0.002 + 0.064;
  const double slow_step = 2 * (latency_s + slice_s) + 0.002 + 0.256;
  EXPECT_NEAR(static_cast<double>(workers[0].steps) / static_cast<double>(workers[1].steps), slow_step / fast_step, 0.05);
  EXPECT_NEAR(ran.summary.time().wait_s / ran.summary.time().total(), 0, 0.02);
}

TEST(World, IdsFollowTheListOfNodesHoweverFarEachIs) {
  WorldOptions options = cluster_of({1, 1, 1}, 2);
  for (std::size_t n = 0; n < 3; ++n) options.cluster.nodes[n].link.latency = from_seconds(0.003 - 0.001 * static_cast<double>(n));
  const auto joined = run(options).of<trace::Joined>();
  ASSERT_EQ(joined.size(), 3U);
  for (std::uint32_t n = 0; n < 3; ++n) {
    EXPECT_EQ(joined[n].worker, WorkerId{n});
    EXPECT_EQ(joined[n].node, n);
    EXPECT_EQ(joined[n].at, at_seconds(0.003)) << "when the last Hello is there";
  }
}

TEST(World, MemoryLimitsWhatANodeIsOrdered) {
  WorldOptions options = cluster_of({1, 1}, 4);
  options.max_batch = {0, 28};
  for (const trace::Ordered& ordered : run(options).of<trace::Ordered>())
    EXPECT_EQ(ordered.samples, ordered.worker.value == 0 ? 100U : 28U);
}

TEST(World, NodesWithBf16TransferSendAtMostBf16) {
  WorldOptions options = cluster_of({1, 1}, 4);
  const TrainingOutcome full = run(options).outcome;
  options.bf16_transfer = {true, true};
  const TrainingOutcome half = run(options).outcome;
  EXPECT_EQ(2 * half.bytes_pushed, full.bytes_pushed);
  EXPECT_EQ(2 * half.bytes_pulled, full.bytes_pulled);
  EXPECT_LT(half.ended, full.ended);
  options.bf16_transfer = {true, false};
  const TrainingOutcome mixed = run(options).outcome;
  EXPECT_EQ(4 * mixed.bytes_pushed, 3 * full.bytes_pushed);
  EXPECT_EQ(4 * mixed.bytes_pulled, 3 * full.bytes_pulled);
}

TEST(World, BitsAreChosenByTheBytesOnTheLink) {
  WorldOptions options = cluster_of({1, 1}, 100);
  const double floats_s = 0.6 * (batch / (2 * 250.0) + 0.002);  // one way: more than hides under computing
  for (cluster::Node& node : options.cluster.nodes) node.link.up_bytes_per_second = node.link.down_bytes_per_second = 4000 / floats_s;
  const auto bits_in_the_middle = [&] {
    const auto released = run(options, "hps").of<trace::Released>();
    return released[released.size() / 2].push_bits;
  };
  EXPECT_EQ(bits_in_the_middle(), 16);
  options.bf16_transfer = {true, true};
  EXPECT_EQ(bits_in_the_middle(), 32) << "in full they are no more, and lose nothing";
}

TEST(World, TheTraceTellsTheMeanLossOfEveryContribution) {
  struct SameLoss : NoNumbers {
    StepReport compute(const wire::Order& order, std::span<const ArrivedSlice>) override {
      return {.loss_sum = 2.5 * static_cast<double>(order.lease.size()), .squared_norm = 1};
    }
  } numbers;
  const auto contributed = run(cluster_of({2, 1}, 3), "bsp", numbers).of<trace::Contributed>();
  EXPECT_EQ(contributed.size(), 6U);
  for (const trace::Contributed& event : contributed) EXPECT_DOUBLE_EQ(event.loss, 2.5);
}

TEST(World, TheSameSeedIsTheSameRunAndAnotherIsAnother) {
  WorldOptions options = cluster_of({4, 2, 1}, 20);
  for (cluster::Node& node : options.cluster.nodes) node.jitter = 0.1;
  const std::string first = run(options).fingerprint;
  EXPECT_EQ(run(options).fingerprint, first);
  options.seed = 1;
  EXPECT_NE(run(options).fingerprint, first);
}

TEST(World, AKilledWorkersLeaseIsDoneByTheOthers) {
  WorldOptions options = cluster_of({1, 1}, 4);
  options.cluster.faults = {fault(FaultKind::kill, 0.1)};
  const Ran ran = run(options);
  EXPECT_EQ(ran.outcome.why, protocol::EndReason::every_sample_counted);
  const auto left = ran.of<trace::Left>();
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].why, static_cast<std::uint8_t>(protocol::LeaveReason::connection_lost));
  EXPECT_EQ(left[0].at, at_seconds(0.1 + latency_s)) << "the chief sees the connection break";
}

TEST(World, AnAnswerToAFormerLifeReachesNobody) {
  WorldOptions options = cluster_of({1, 1}, 4);
  options.cluster.nodes[0].link.latency = from_seconds(0.02);  // its Hello is still in flight when it dies and comes back
  options.cluster.faults = {fault(FaultKind::kill, 0.005), fault(FaultKind::join, 0.006)};
  const Ran ran = run(options);
  EXPECT_EQ(ran.outcome.why, protocol::EndReason::every_sample_counted);
  const auto left = ran.of<trace::Left>();
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].why, static_cast<std::uint8_t>(protocol::LeaveReason::connection_lost))
      << "not taken for dead: its first connection broke at once";
  EXPECT_EQ(left[0].at, at_seconds(0.025));
  for (const trace::ComputeBegan& began : ran.of<trace::ComputeBegan>()) EXPECT_NE(began.worker, left[0].worker);
}

TEST(World, AShortPauseIsWaitedOutAndALongOneIsTakenForDeath) {
  WorldOptions options = cluster_of({1, 1}, 40);
  options.cluster.faults = {fault(FaultKind::pause, 1, 3)};
  EXPECT_TRUE(run(options).of<trace::Left>().empty());
  options.cluster.faults = {fault(FaultKind::pause, 1, 8)};
  const Ran ran = run(options);
  const auto left = ran.of<trace::Left>();
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].why, static_cast<std::uint8_t>(protocol::LeaveReason::silent_too_long));
  EXPECT_EQ(ran.of<trace::Joined>().size(), 3U) << "it comes back under a new id";
  EXPECT_EQ(ran.outcome.why, protocol::EndReason::every_sample_counted);
}

TEST(World, NothingMovesOnAPausedNodeUntilItsLastPauseEnds) {
  WorldOptions options = cluster_of({1, 1}, 40);
  options.cluster.faults = {fault(FaultKind::pause, 1, 1), fault(FaultKind::pause, 1.5, 2)};
  const Ran ran = run(options);
  int after = 0;
  for (const trace::Event& e : ran.events) {
    if (trace::worker_of(e.data) != WorkerId{0} || (!e.is<trace::ComputeBegan>() && !e.is<trace::ComputeEnded>())) continue;
    EXPECT_TRUE(e.at <= at_seconds(1) || e.at >= at_seconds(3.5)) << seconds(e.at);
    after += e.at >= at_seconds(3.5) ? 1 : 0;
  }
  EXPECT_GT(after, 0);
}

TEST(World, APausedNodeNeitherLeavesNorComesBeforeThePauseEnds) {
  WorldOptions options = cluster_of({1, 1}, 40);
  options.cluster.faults = {fault(FaultKind::pause, 1, 2), fault(FaultKind::leave, 1.5), fault(FaultKind::join, 1.6)};
  const Ran ran = run(options);
  const auto left = ran.of<trace::Left>();
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].why, static_cast<std::uint8_t>(protocol::LeaveReason::said_goodbye));
  EXPECT_EQ(left[0].at, at_seconds(3 + latency_s));
  EXPECT_EQ(ran.of<trace::Joined>().back().at, at_seconds(3 + latency_s));
}

TEST(World, ANodeKilledWhilePausedStaysPausedForItsNextLife) {
  WorldOptions options = cluster_of({1, 1}, 40);
  options.cluster.faults = {fault(FaultKind::pause, 1, 2), fault(FaultKind::kill, 1.5), fault(FaultKind::join, 1.6)};
  const Ran ran = run(options);
  EXPECT_EQ(ran.of<trace::Left>().front().at, at_seconds(1.5 + latency_s));
  EXPECT_EQ(ran.of<trace::Joined>().back().at, at_seconds(3 + latency_s));
}

TEST(World, APartitionLongerThanTheDeadlineEndsInANewMembership) {
  WorldOptions options = cluster_of({1, 1}, 60);
  options.cluster.faults = {fault(FaultKind::partition, 1, 8)};
  const Ran ran = run(options);
  ASSERT_EQ(ran.of<trace::Left>().size(), 1U);
  const auto joined = ran.of<trace::Joined>();
  ASSERT_EQ(joined.size(), 3U);
  EXPECT_EQ(joined[2].node, 0U) << "the same node";
  EXPECT_GE(joined[2].at, at_seconds(9));
  EXPECT_EQ(ran.outcome.why, protocol::EndReason::every_sample_counted);
}

TEST(World, ANodeWhoseFirstFaultIsAJoinStartsOutside) {
  WorldOptions options = cluster_of({1, 1}, 40);
  options.cluster.faults = {fault(FaultKind::join, 2, 0, 1)};
  options.chief.quorum = 1;
  const auto joined = run(options).of<trace::Joined>();
  ASSERT_EQ(joined.size(), 2U);
  EXPECT_EQ(joined[1].at, at_seconds(2 + latency_s));
}

TEST(World, EverybodyGoneForGoodEndsTheRun) {
  WorldOptions options = cluster_of({1, 1}, 4000);
  options.chief.empty_deadline = from_seconds(20);
  options.cluster.faults = {fault(FaultKind::kill, 3, 0, 0), fault(FaultKind::leave, 4, 0, 1)};
  const Ran ran = run(options);
  EXPECT_EQ(ran.outcome.why, protocol::EndReason::nobody_left);
  EXPECT_NEAR(seconds(ran.outcome.ended), 24, 2);
}

/// The chief receives it while its own actions are carried out.
TEST(World, Ends_as_diverged_when_an_evaluation_is_not_finite) {
  class NaNLoss final : public NoNumbers {
    std::optional<Evaluation> exported(ServerId server, Version version) override {
      auto evaluation = NoNumbers::exported(server, version);
      if (evaluation) evaluation->loss = std::nan("");
      return evaluation;
    }
  } numbers;
  for (const char* strategy : {"bsp", "asp", "hps"}) {
    WorldOptions options = cluster_of({1, 2, 4}, 400);
    options.chief.evaluate_every = 5 * batch;
    const Ran ran = run(options, strategy, numbers);
    EXPECT_EQ(ran.outcome.why, protocol::EndReason::diverged) << strategy;
    EXPECT_EQ(ran.of<trace::Finished>().size(), 1U) << strategy;
    EXPECT_LT(ran.outcome.samples, 20U * batch) << strategy;
  }
}

TEST(World, MoreEventsThanItsBoundAreOurBug) {
  WorldOptions options = cluster_of({1, 1}, 40);
  options.max_events = 100;
  EXPECT_THROW((void)run(options), Bug);
}

}  // namespace
}  // namespace motley::sim
