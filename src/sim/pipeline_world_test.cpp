// Simulated pipelines against times worked out by hand, and the promises of each schedule, read from the trace alone.
#include "sim/pipeline_world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/rng.h"
#include "pipeline/partition.h"
#include "trace/pipeline.h"
#include "trace/sinks.h"

namespace motley::sim {
namespace {

constexpr double third = 0.01;

/// As many equal blocks as devices, links that cost nothing unless said.
PipelineWorldOptions equal_stages(std::uint32_t stages, const std::string& schedule, std::uint32_t micros, std::uint64_t minis,
                                  double link_s = 0) {
  PipelineWorldOptions world;
  for (std::uint32_t s = 0; s < stages; ++s) {
    world.problem.blocks.push_back({"b", third, third, third, 1e3, 1e3, 1e3});
    world.problem.devices.push_back({"d", 1, 0});
    cluster::Node node;
    node.name = "d" + std::to_string(s);
    world.cluster.nodes.push_back(node);
  }
  world.problem.links.assign(stages, std::vector<pipeline::DeviceLink>(stages, {link_s > 0 ? 1e3 / link_s : 1e15, 0}));
  world.cut = pipeline::uniform(world.problem);
  world.reschedule = [schedule, micros](const pipeline::Problem& problem, const pipeline::Cut& cut) {
    return pipeline::make_schedule({schedule, micros, 0}, problem, cut);
  };
  world.repartition = [](const pipeline::Problem& problem) { return pipeline::find(problem).cut; };
  world.mini_batches = minis;
  world.samples = 8;
  return world;
}

pipeline::Schedule schedule_of(const PipelineWorldOptions& world) { return world.reschedule(world.problem, world.cut); }

struct Ran {
  PipelineOutcome outcome;
  std::vector<trace::Event> events;
  trace::Pipeline pipeline{0, 0};
};

Ran run(const PipelineWorldOptions& options) {
  NoPipelineNumbers none;
  trace::Recorder recorder;
  Ran ran;
  trace::Tee tee({&recorder, &ran.pipeline});
  ran.outcome = PipelineWorld(options, none, tee).run();
  ran.events = recorder.events();
  return ran;
}

TEST(PipelineWorld, NaiveTakesAllPartsOneAfterTheOther) {
  const Ran ran = run(equal_stages(4, "naive-mp", 1, 10));
  // Weights are weighed while the gradient goes on to the stage before, all but the first stage's.
  EXPECT_NEAR(seconds(ran.outcome.ended), 10 * (4 * 2 * third + third), 1e-9);
}

TEST(PipelineWorld, GpipeWithEqualStagesHasTheEfficiencyOfTheBook) {
  for (const std::uint32_t stages : {2U, 4U, 8U})
    for (const std::uint32_t micros : {4U, 8U, 32U}) {
      PipelineWorldOptions world = equal_stages(stages, "gpipe", micros, 20);
      for (pipeline::Block& block : world.problem.blocks) block.weight_s = 0;  // forward and backward alone, as the book has it
      const Ran ran = run(world);
      const double busy = micros * 2 * third;
      EXPECT_NEAR(20 * busy / seconds(ran.outcome.ended), static_cast<double>(micros) / (micros + stages - 1), 0.01)
          << stages << " " << micros;
    }
}

TEST(PipelineWorld, ALinkIsTakenForAsLongAsItsBytesTake) {
  const Ran ran = run(equal_stages(2, "naive-mp", 1, 5, 0.005));
  EXPECT_NEAR(seconds(ran.outcome.ended), 5 * (2 * 2 * third + third + 2 * 0.005), 1e-9);
}

TEST(PipelineWorld, AdapipeIsNearTheIdealOnEqualStages) {
  for (const std::uint32_t stages : {2U, 4U, 8U}) {
    const Ran ran = run(equal_stages(stages, "adapipe", 2 * stages, 60));
    EXPECT_GT(ran.pipeline.utilization(), 0.97) << stages;
    EXPECT_NEAR(ran.pipeline.updates_per_second(), 1 / (2 * stages * 3 * third), 0.03 / (2 * stages * 3 * third)) << stages;
  }
}

/// Reads the trace and knows no machine.
void expect_promises(const PipelineWorldOptions& world, const Ran& ran, const std::string& name) {
  const pipeline::Schedule schedule = schedule_of(world);
  const std::uint32_t micros = schedule.micro_batches;
  using Key = std::pair<std::uint32_t, std::uint64_t>;  // stage, micro-batch
  std::map<Key, std::vector<trace::PartBegan>> parts;
  std::map<std::uint32_t, std::uint64_t> committed, held, running;
  for (const trace::Event& e : ran.events) {
    if (const auto* began = e.as<trace::PartBegan>()) {
      const std::uint32_t stage = began->stage.value;
      EXPECT_EQ(running[stage]++, 0U) << name << ": one part at a time";
      auto& of = parts[{stage, began->micro_batch}];
      EXPECT_EQ(began->part, of.size()) << name << ": forward, input, weight, each once";
      if (began->part == 0) {
        EXPECT_LE(++held[stage], schedule.max_in_flight[stage]) << name;
        EXPECT_EQ(began->version.value, committed[stage]) << name << ": the freshest there is";
        EXPECT_LE(began->micro_batch / micros - committed[stage], schedule.ahead) << name << ": delay";
      } else {
        EXPECT_EQ(began->version, of.front().version) << name << ": backward uses what forward used";
      }
      of.push_back(*began);
    } else if (const auto* ended = e.as<trace::PartEnded>()) {
      --running[ended->stage.value];
      if (ended->part == 1) --held[ended->stage.value];
    } else if (const auto* update = e.as<trace::Committed>()) {
      EXPECT_EQ(update->version.value, ++committed[update->stage.value]) << name << ": every mini-batch once, in order";
    }
  }
  for (const auto& [stage, count] : committed) EXPECT_EQ(count, world.mini_batches) << name;
  EXPECT_EQ(parts.size(), world.cut.size() * world.mini_batches * micros) << name;
  for (const auto& [key, of] : parts) EXPECT_EQ(of.size(), 3U) << name;
}

TEST(PipelineWorld, SchedulesKeepTheirLimitsOnUnlikeDevices) {
  Rng rng(1, "pipelines");
  for (int i = 0; i < 40; ++i) {
    const auto devices = 1 + static_cast<std::uint32_t>(rng.below(6));
    for (const std::string_view schedule : pipeline::schedule_names()) {
      PipelineWorldOptions world = equal_stages(devices, "gpipe", 1, 6 + rng.below(10), 0.02 * rng.uniform());
      for (pipeline::Block& block : world.problem.blocks) block.weight_s *= rng.uniform();
      for (std::uint32_t d = 0; d < devices; ++d) {
        world.problem.devices[d].speed = 1 + 3 * rng.uniform();
        world.cluster.nodes[d].jitter = 0.3 * rng.uniform();
      }
      if (i % 3 == 0) world.cluster.faults.push_back({at_seconds(0.2), cluster::FaultKind::slow, NodeId{0}, from_seconds(0.5), 4});
      world.seed = static_cast<std::uint64_t>(i);
      const auto micros = 1 + static_cast<std::uint32_t>(rng.below(9));
      world.reschedule = [name = std::string(schedule), micros](const pipeline::Problem& problem, const pipeline::Cut& cut) {
        return pipeline::make_schedule({name, micros, 0.2}, problem, cut);
      };
      expect_promises(world, run(world), std::string(schedule) + " in world " + std::to_string(i));
    }
  }
}

/// Every stage that does something was announced, by the trace alone.
void expect_announced(const Ran& ran) {
  std::set<WorkerId> announced;
  for (const trace::Event& e : ran.events) {
    if (const auto* joined = e.as<trace::Joined>()) announced.insert(joined->worker);
    if (e.is<trace::Repartitioned>() || e.is<trace::PartBegan>() || e.is<trace::Committed>()) {
      const WorkerId stage = *trace::worker_of(e.data);
      ASSERT_TRUE(announced.contains(stage)) << "stage " << stage.value << " at " << seconds(e.at) << " s";
    }
  }
}

TEST(PipelineWorld, ALayoutWithMoreStagesThanTheFirstIsAnnounced) {
  PipelineWorldOptions world = equal_stages(4, "gpipe", 4, 40);
  world.cut = {{0, 4, 0}};  // one stage; when its device dies, the other three take over
  world.repartition = [](const pipeline::Problem& problem) { return std::optional(pipeline::uniform(problem)); };
  world.snapshot_every = 5;
  world.cluster.faults.push_back({at_seconds(2), cluster::FaultKind::kill, NodeId{0}, {}, 1});
  const Ran ran = run(world);
  EXPECT_EQ(ran.outcome.mini_batches, 40U);
  EXPECT_EQ(ran.pipeline.stages().size(), 3U);
  expect_announced(ran);
}

TEST(PipelineWorld, StagesThatFirstStandStillAreAnnouncedWhenTheyBegin) {
  PipelineWorldOptions world = equal_stages(2, "gpipe", 4, 10);
  world.repartition = [](const pipeline::Problem& problem) -> std::optional<pipeline::Cut> {
    if (problem.devices.size() < 2) return std::nullopt;  // one alone cannot hold the model
    return pipeline::uniform(problem);
  };
  world.cluster.faults.push_back({at_seconds(1), cluster::FaultKind::join, NodeId{1}, {}, 1});
  const Ran ran = run(world);
  EXPECT_EQ(ran.outcome.mini_batches, 10U);
  expect_announced(ran);
}

TEST(PipelineWorld, BlocksMoveAwayFromADeviceThatSlowsDown) {
  PipelineWorldOptions world = equal_stages(4, "adapipe", 8, 400, 0.0005);
  const std::vector<pipeline::Block> one = world.problem.blocks;
  world.problem.blocks.assign(24, one.front());
  world.cut = pipeline::uniform(world.problem);
  const double slot = pipeline::cost_of(world.problem, world.cut).slot_s;
  world.cluster.faults.push_back({at_seconds(60 * 8 * slot), cluster::FaultKind::slow, NodeId{1}, from_seconds(1e6), 2});
  const Ran ran = run(world);
  EXPECT_GE(ran.pipeline.repartitions(), 1U);
  EXPECT_LE(ran.pipeline.repartitions(), 2U) << "it settles";
  pipeline::Problem known = world.problem;
  known.devices[1].speed /= 2;
  const double best = 1 / (8 * pipeline::cost_of(known, *pipeline::exact(known)).slot_s);
  const std::vector<double>& updates = ran.pipeline.updates_s();
  // From three looks after it slowed down: 100 updates are long past them.
  EXPECT_GE(100 / (updates[399] - updates[299]), 0.9 * best);
  std::map<std::uint32_t, std::uint64_t> committed;
  for (const trace::Event& e : ran.events)
    if (const auto* update = e.as<trace::Committed>()) {
      EXPECT_EQ(update->version.value, ++committed[update->stage.value]) << "every mini-batch once on every stage, in order";
    }
  PipelineWorldOptions stubborn = world;
  stubborn.reschedule = [&](const pipeline::Problem& problem, const pipeline::Cut& cut) {
    pipeline::Schedule schedule = world.reschedule(problem, cut);
    schedule.replan_every = 0;
    return schedule;
  };
  EXPECT_LT(seconds(ran.outcome.ended), 0.8 * seconds(run(stubborn).outcome.ended)) << "than without moving";
}

/// Commits that count, by stage of the generation that made them: what came after the model that was gone on from does not.
void expect_every_mini_batch_once(const Ran& ran, std::uint64_t minis) {
  std::map<std::uint32_t, std::uint64_t> committed;
  std::uint64_t from = 0;
  std::vector<std::uint32_t> blocks;
  for (const trace::Event& e : ran.events) {
    if (const auto* layout = e.as<trace::Repartitioned>()) {
      if (layout->stage.value == 0) {
        committed.clear();
        EXPECT_EQ(layout->first_block, 0U);
      }
      from = layout->version.value;
      committed[layout->stage.value] = from;
    } else if (const auto* update = e.as<trace::Committed>()) {
      EXPECT_EQ(update->version.value, ++committed[update->stage.value]) << "in order, without a gap";
    }
  }
  for (const auto& [stage, count] : committed) EXPECT_EQ(count, minis) << "stage " << stage;
  EXPECT_EQ(ran.outcome.mini_batches, minis);
}

PipelineWorldOptions of_many_blocks(const std::string& schedule, std::uint64_t minis) {
  PipelineWorldOptions world = equal_stages(4, schedule, 8, minis, 0.0005);
  world.problem.blocks.assign(12, world.problem.blocks.front());
  world.cut = pipeline::uniform(world.problem);
  world.snapshot_every = 10;
  return world;
}

TEST(PipelineWorld, WhenAStageDiesTheOthersGoOnFromTheLastWholeModel) {
  for (const std::string_view name : pipeline::schedule_names())
    for (const std::uint32_t victim : {0U, 1U, 2U, 3U}) {
      PipelineWorldOptions world = of_many_blocks(std::string(name), 60);
      const double whole = seconds(run(world).outcome.ended);
      world.cluster.faults.push_back({at_seconds(0.4 * whole), cluster::FaultKind::kill, NodeId{victim}, {}, 1});
      const Ran ran = run(world);
      expect_every_mini_batch_once(ran, 60);
      EXPECT_EQ(ran.pipeline.repartitions(), 1U) << name;
      EXPECT_LT(ran.outcome.again, 12U) << name << ": no more than since it was kept last";
    }
}

TEST(PipelineWorld, AReturningDeviceIsUsedFromAVersionBoundary) {
  PipelineWorldOptions world = of_many_blocks("adapipe", 300);
  const double whole = seconds(run(world).outcome.ended);
  world.cluster.faults.push_back({at_seconds(0.2 * whole), cluster::FaultKind::kill, NodeId{2}, {}, 1});
  world.cluster.faults.push_back({at_seconds(0.3 * whole), cluster::FaultKind::join, NodeId{2}, {}, 1});
  const Ran ran = run(world);
  expect_every_mini_batch_once(ran, 300);
  EXPECT_EQ(ran.pipeline.repartitions(), 2U);
  EXPECT_LT(seconds(ran.outcome.ended), 1.15 * whole) << "four devices again";
}

TEST(PipelineWorld, WaitsForADeviceWhenTheModelDoesNotFit) {
  PipelineWorldOptions world = of_many_blocks("1f1b", 30);
  for (pipeline::Device& device : world.problem.devices) device.memory_bytes = 5e4;
  for (pipeline::Block& block : world.problem.blocks)
    block.parameter_bytes = 3e3;  // four times 9e3 and some activations: none can have more
  const double whole = seconds(run(world).outcome.ended);
  world.cluster.faults.push_back({at_seconds(0.4 * whole), cluster::FaultKind::kill, NodeId{1}, {}, 1});
  EXPECT_TRUE(run(world).outcome.not_enough_devices);
  world.cluster.faults.push_back({at_seconds(3 * whole), cluster::FaultKind::join, NodeId{1}, {}, 1});
  const Ran ran = run(world);
  EXPECT_FALSE(ran.outcome.not_enough_devices);
  expect_every_mini_batch_once(ran, 30);
  EXPECT_GT(seconds(ran.outcome.ended), 3 * whole);
}

TEST(PipelineWorld, DeathsAndReturnsAtRandomCountEveryMiniBatchOnce) {
  Rng rng(2, "deaths of stages");
  for (int i = 0; i < 60; ++i) {
    const auto names = pipeline::schedule_names();
    PipelineWorldOptions world = of_many_blocks(std::string(names[rng.below(names.size())]), 40);
    world.snapshot_every = 1 + rng.below(12);
    for (auto& node : world.cluster.nodes) node.jitter = 0.2 * rng.uniform();
    const double whole = seconds(run(world).outcome.ended);
    double at = 0;
    for (int k = 0; k < 6; ++k) {
      at += 0.4 * whole * rng.uniform();
      const NodeId node{1 + static_cast<std::uint32_t>(rng.below(3))};  // one always lives
      world.cluster.faults.push_back(
          {at_seconds(at), rng.below(2) == 0 ? cluster::FaultKind::kill : cluster::FaultKind::join, node, {}, 1});
    }
    for (std::uint32_t n = 0; n < 4; ++n)  // nobody begins outside
      world.cluster.faults.insert(world.cluster.faults.begin(), {at_seconds(0), cluster::FaultKind::slow, NodeId{n}, {}, 1});
    world.seed = static_cast<std::uint64_t>(i);
    SCOPED_TRACE(i);
    expect_every_mini_batch_once(run(world), 40);
  }
}

TEST(PipelineWorld, TheSameSeedIsTheSameRun) {
  PipelineWorldOptions world = equal_stages(4, "adapipe", 8, 20, 0.003);
  for (auto& node : world.cluster.nodes) node.jitter = 0.2;
  EXPECT_EQ(run(world).events, run(world).events);
  const auto before = run(world).outcome.ended;
  world.seed = 5;
  EXPECT_NE(run(world).outcome.ended, before);
}

TEST(PipelineWorld, KeepsWhatAdapipeHoldsAndOneOldVersionAtMost) {
  const PipelineWorldOptions world = equal_stages(4, "adapipe", 8, 30);
  const Ran ran = run(world);
  for (std::size_t s = 0; s < 4; ++s) {
    EXPECT_LE(ran.outcome.peak_kept_bytes[s], (schedule_of(world).max_in_flight[s] + 3) * 1e3) << "and three whose weights wait";
    EXPECT_LE(ran.outcome.peak_stash_bytes[s] - ran.outcome.peak_kept_bytes[s], 1e3 + 1e-9);
  }
  EXPECT_EQ(run(equal_stages(4, "gpipe", 8, 30)).outcome.peak_stash_bytes[0], 8e3) << "all micro-batches, no old version";
}

}  // namespace
}  // namespace motley::sim
