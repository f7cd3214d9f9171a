// adaptive in difficult worlds: few workers that become 32 times slower, pause, and die. Every state is entered and every rule used; an
// independent checker confirms each from the trace only.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "checkers.h"
#include "policy/strategies.h"
#include "sim/world.h"
#include "state_checker.h"
#include "trace/sinks.h"

namespace motley {
namespace {

using checkers::StatesFollowFromVersions;

constexpr std::uint32_t global_batch = 48;
constexpr std::uint64_t samples = 60'000;

/// Three workers, one of which becomes 32 times slower again and again. The overhead is so large that even a step of one sample then
/// exceeds the over-stale threshold, if steps have no time limit.
sim::WorldOptions hard_world(std::uint64_t seed, bool deadly) {
  sim::WorldOptions world;
  for (std::uint32_t n = 0; n < 3; ++n) {
    cluster::Node node;
    node.name = "node" + std::to_string(n);
    node.samples_per_second = 1000;
    node.overhead = from_seconds(0.025);
    node.jitter = 0.05;
    node.link = {from_seconds(1e-4), 1e8, 1e8};
    if (n == 2) node.slowdowns = cluster::Slowdowns{32, from_seconds(2), from_seconds(2)};
    world.cluster.nodes.push_back(node);
  }
  world.cluster.server_nic = {from_seconds(1e-4), 1e9, 1e9};
  world.cluster.silence_deadline = from_seconds(60);
  if (deadly) {
    Rng rng(seed, "deaths");
    double at = 0;
    for (int i = 0; i < 12; ++i) {
      at += 0.5 + 2 * rng.uniform();
      world.cluster.faults.push_back({at_seconds(at), cluster::FaultKind::kill, NodeId{2}, {}, 1});
      at += 0.2;
      world.cluster.faults.push_back({at_seconds(at), cluster::FaultKind::join, NodeId{2}, {}, 1});
    }
  }
  const std::vector<store::TensorPlace> tensors{{0, 1000, TensorKind::parameter}};
  world.layout = store::cut(tensors, 600, 1);
  world.seed = seed;
  world.chief.epoch_samples = world.chief.total_samples = samples;
  world.chief.evaluate_every = samples;
  world.chief.quorum = 3;
  world.chief.silence_deadline = world.cluster.silence_deadline;
  world.max_events = 3'000'000;
  return world;
}

struct Watched {
  StatesFollowFromVersions states{{.global_batch = global_batch}};
  checkers::EverySampleOnce once{samples, samples};
  checkers::VersionsOnlyGrow versions;
  checkers::FormerMembersFenced fenced;
  sim::TrainingOutcome outcome;

  void run(const sim::WorldOptions& world) {
    policy::StrategySpec spec;
    spec.kind = "adaptive";
    spec.knobs.time_limited = false;  // otherwise no step takes long
    auto strategy = policy::make_strategy(spec, {global_batch, 0.9});
    trace::Tee tee({&states, &once, &versions, &fenced});
    sim::NoNumbers none;
    const policy::LrSchedule schedule({}, global_batch, samples, samples);
    outcome = sim::World(world, std::move(*strategy), schedule, none, tee).run();
    for (const checkers::Checker* checker : std::initializer_list<const checkers::Checker*>{&states, &once, &versions, &fenced})
      for (const checkers::Complaint& complaint : checker->complaints())
        ADD_FAILURE() << "seed " << world.seed << ", " << checker->name() << ": " << complaint;
    EXPECT_EQ(outcome.why, protocol::EndReason::every_sample_counted) << "seed " << world.seed;
  }
};

TEST(States, Slow_worlds_enter_every_state_and_use_every_rule) {
  std::uint64_t softened = 0;
  std::uint64_t accepted = 0;
  std::uint64_t discarded = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t recovered = 0;
  std::array<std::uint64_t, 3> entered{};
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Watched watched;
    watched.run(hard_world(seed, false));
    for (std::size_t state = 0; state < entered.size(); ++state) entered[state] += watched.states.entered(state);
    softened += watched.states.softened();
    accepted += watched.states.accepted_over_stale();
    discarded += watched.states.discarded();
    cancelled += watched.states.cancelled();
    recovered += watched.states.recovered();
  }
  EXPECT_GT(entered[0], 20U);
  EXPECT_GT(entered[1], 20U);
  EXPECT_GT(entered[2], 20U);
  EXPECT_GT(softened, 20U) << "late contributions of stragglers are softened";
  EXPECT_GT(accepted, 5U) << "over-stale and aligned with the momentum";
  EXPECT_GT(discarded, 5U) << "over-stale and against the momentum";
  EXPECT_GT(cancelled, 20U);
  EXPECT_GT(recovered, 20U);
}

TEST(States, Deaths_in_any_state_keep_exactly_once) {
  for (std::uint64_t seed = 100; seed < 130; ++seed) {
    Watched watched;
    watched.run(hard_world(seed, true));
  }
}

}  // namespace
}  // namespace motley
