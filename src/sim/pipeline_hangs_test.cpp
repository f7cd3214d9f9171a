// Simulated pipelines whose devices hang while their processes live: the hanging stage is expelled, stages that wait for it are not, and
// training goes on. Read from the trace alone.
#include <gtest/gtest.h>

#include <algorithm>

#include "pipeline/partition.h"
#include "protocol/chief.h"
#include "sim/pipeline_world.h"
#include "trace/events_for_tests.h"
#include "trace/sinks.h"

namespace motley::sim {
namespace {

constexpr std::uint32_t stages = 4;
constexpr std::uint64_t mini_batches = 60;

/// Four equal devices, sixteen equal blocks of 30 ms; a run takes some 30 s and more.
PipelineWorldOptions four_stages(const std::string& schedule) {
  PipelineWorldOptions world;
  for (int b = 0; b < 16; ++b) world.problem.blocks.push_back({"b", 0.01, 0.01, 0.01, 1e3, 1e3, 1e3});
  for (std::uint32_t s = 0; s < stages; ++s) {
    world.problem.devices.push_back({"d", 1, 0});
    cluster::Node node;
    node.name = "d" + std::to_string(s);
    node.jitter = 0.05;
    world.cluster.nodes.push_back(node);
  }
  world.problem.links.assign(stages, std::vector<pipeline::DeviceLink>(stages, {1e9, 1e-4}));
  world.cut = pipeline::uniform(world.problem);
  world.reschedule = [schedule](const pipeline::Problem& problem, const pipeline::Cut& cut) {
    return pipeline::make_schedule({schedule, 4, 0.05}, problem, cut);
  };
  world.repartition = [](const pipeline::Problem& problem) { return pipeline::find(problem).cut; };
  world.snapshot_every = 10;
  world.mini_batches = mini_batches;
  world.samples = 8;
  world.cluster.step_limit = from_seconds(3);
  return world;
}

struct Ran {
  PipelineOutcome outcome;
  std::vector<trace::Event> events;
  template <class T>
  [[nodiscard]] std::vector<trace::Timed<T>> of() const {
    return trace::all_of<T>(events);
  }
  /// Every mini-batch was committed in order, none twice but those that a loss undid.
  void expect_whole() const {
    EXPECT_EQ(outcome.mini_batches, mini_batches);
    std::uint64_t done = 0;
    for (const trace::Event& e : events) {
      if (const auto* layout = e.as<trace::Repartitioned>()) done = std::min(done, layout->version.value);
      if (const auto* update = e.as<trace::Applied>()) {
        EXPECT_EQ(update->version.value, ++done);
      }
    }
    EXPECT_EQ(done, mini_batches);
  }
  void expect_only_left(std::uint32_t node, std::size_t times) const {
    EXPECT_EQ(of<trace::Left>().size(), times);
    for (const trace::Left& e : of<trace::Left>()) {
      EXPECT_EQ(e.node, node);
      EXPECT_EQ(e.why, static_cast<std::uint8_t>(protocol::LeaveReason::step_too_long));
    }
  }
};

Ran run(const PipelineWorldOptions& options) {
  NoPipelineNumbers none;
  trace::Recorder recorder;
  Ran ran;
  ran.outcome = PipelineWorld(options, none, recorder).run();
  ran.events = recorder.events();
  return ran;
}

cluster::Fault hang(double at_s, std::uint32_t node, Duration lasting = cluster::forever) {
  return {at_seconds(at_s), cluster::FaultKind::hang, NodeId{node}, lasting, 1};
}

TEST(PipelineHangs, WhicheverStageHangsIsExpelledAndTheOthersGoOn) {
  for (const std::string_view schedule : pipeline::schedule_names())
    for (std::uint32_t node = 0; node < stages; ++node)
      for (const double at_s : {0.1, 3.33}) {
        SCOPED_TRACE(testing::Message() << schedule << ", node " << node << " at " << at_s << " s");
        PipelineWorldOptions world = four_stages(std::string(schedule));
        world.cluster.faults = {hang(at_s, node)};
        const Ran ran = run(world);
        ran.expect_whole();
        ran.expect_only_left(node, 1);
        const double limit = at_s > 3 ? 3 : 30;  // ten times before anything is known of it
        ASSERT_FALSE(ran.of<trace::Left>().empty());
        EXPECT_LT(seconds(ran.of<trace::Left>()[0].at), at_s + limit + 2);
      }
}

TEST(PipelineHangs, WhoMovesAgainIsTakenInAgain) {
  PipelineWorldOptions world = four_stages("1f1b");
  world.mini_batches = 200;
  world.cluster.faults = {hang(6, 1, from_seconds(9))};
  const Ran ran = run(world);
  ran.expect_only_left(1, 1);
  EXPECT_EQ(ran.of<trace::Repartitioned>().back().stage.value, stages - 1) << "four again";
}

TEST(PipelineHangs, WithinTheLimitAreWaitedOut) {
  PipelineWorldOptions world = four_stages("gpipe");
  world.cluster.faults = {hang(6, 1, from_seconds(2)), hang(15, 3, from_seconds(2))};
  const Ran ran = run(world);
  ran.expect_whole();
  ran.expect_only_left(0, 0);
}

TEST(PipelineHangs, OfAllButOneLeaveItTheWholeModel) {
  PipelineWorldOptions world = four_stages("gpipe");
  world.mini_batches = 100;
  world.cluster.faults = {hang(6, 0), hang(6, 1), hang(6, 2)};
  const Ran ran = run(world);
  EXPECT_EQ(ran.outcome.mini_batches, 100U);
  EXPECT_EQ(ran.of<trace::Left>().size(), 3U);
}

TEST(PipelineHangs, OfAllLeaveItStandingStill) {
  PipelineWorldOptions world = four_stages("gpipe");
  for (std::uint32_t n = 0; n < stages; ++n) world.cluster.faults.push_back(hang(6, n));
  const Ran ran = run(world);
  EXPECT_TRUE(ran.outcome.not_enough_devices);
  EXPECT_LT(seconds(ran.outcome.ended), 300) << "a second layout is waited for twice as long";
}

}  // namespace
}  // namespace motley::sim
