// Ways between stages, against times worked out by hand.
#include "sim/pipeline_ways.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

namespace motley::sim {
namespace {

/// Four devices that lie in two groups by turns, so that three ways cross the groups' uplinks; 100 bytes a second everywhere.
struct Crossing {
  cluster::Spec cluster;
  plan::Problem problem;
  plan::Cut cut;
  Crossing() {
    cluster.groups.resize(2);
    for (std::uint32_t i = 0; i < 4; ++i) {
      cluster::Node node;
      node.group = i % 2;
      cluster.nodes.push_back(node);
      cut.push_back({i, i + 1, i});
    }
    problem.links.assign(4, std::vector<plan::Between>(4, {100, 0.5}));
  }
};

/// Sends both, then lets time pass; when each arrived, by way and micro-batch.
std::map<std::pair<std::size_t, std::uint64_t>, double> arrivals(const Crossing& at, std::uint32_t slices,
                                                                 const std::vector<std::pair<std::size_t, std::uint64_t>>& sent) {
  PipelineWays ways(at.cluster, slices);
  ways.lay(at.problem, at.cut);
  std::multimap<Instant, std::size_t> calls;
  for (const auto& [way, micro] : sent)
    if (const auto when = ways.send(Instant{}, way, micro, 100)) calls.emplace(*when, way);
  std::map<std::pair<std::size_t, std::uint64_t>, double> arrived;
  while (!calls.empty()) {
    const auto [now, way] = *calls.begin();
    calls.erase(calls.begin());
    const PipelineWays::Passed passed = ways.through(now, way);
    if (passed.arrives) arrived[{way, passed.micro}] = seconds(passed.arrives->time_since_epoch());
    if (passed.next) calls.emplace(*passed.next, way);
  }
  return arrived;
}

TEST(PipelineWays, FirstInFirstOutAtBandwidthAndLatency) {
  const auto way = PipelineWays::forth(0);
  for (const std::uint32_t slices : {1U, 4U}) {
    const auto arrived = arrivals({}, slices, {{way, 0}, {way, 1}});
    EXPECT_NEAR(arrived.at({way, 0}), 1.5, 1e-6);
    EXPECT_NEAR(arrived.at({way, 1}), 2.5, 1e-6);
  }
}

TEST(PipelineWays, ForthAndBackDoNotMeet) {
  const auto arrived = arrivals({}, 4, {{PipelineWays::forth(0), 0}, {PipelineWays::back(0), 0}});
  for (const auto& [who, when] : arrived) EXPECT_NEAR(when, 1.5, 1e-6) << who.first;
}

TEST(PipelineWays, WholeOnesHoldASharedUplinkUntilTheyAreThrough) {
  // Stage 0 to 1 and stage 2 to 3 both go from the first group to the second.
  const auto arrived = arrivals({}, 1, {{PipelineWays::forth(0), 0}, {PipelineWays::forth(2), 0}});
  EXPECT_NEAR(arrived.at({PipelineWays::forth(0), 0}), 1.5, 1e-6);
  EXPECT_NEAR(arrived.at({PipelineWays::forth(2), 0}), 2.5, 1e-6);
}

TEST(PipelineWays, SlicesTakeTurnsOnASharedUplink) {
  const auto arrived = arrivals({}, 4, {{PipelineWays::forth(0), 0}, {PipelineWays::forth(0), 1}, {PipelineWays::forth(2), 0}});
  EXPECT_NEAR(arrived.at({PipelineWays::forth(0), 0}), 2.25, 1e-6) << "four slices of its own and three of the other's";
  EXPECT_NEAR(arrived.at({PipelineWays::forth(2), 0}), 2.5, 1e-6) << "not behind the second one of the other";
  EXPECT_NEAR(arrived.at({PipelineWays::forth(0), 1}), 3.5, 1e-6) << "the uplink is never idle";
}

}  // namespace
}  // namespace motley::sim
