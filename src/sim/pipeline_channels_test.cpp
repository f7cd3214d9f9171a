// Ways between stages, against times worked out by hand.
#include "sim/pipeline_channels.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

namespace motley::sim {
namespace {

/// Four devices that lie in two groups by turns, so that three ways cross the groups' uplinks; 100 bytes a second everywhere.
struct Crossing {
  cluster::Spec cluster;
  pipeline::Problem problem;
  pipeline::Cut cut;
  Crossing() {
    cluster.groups.resize(2);
    for (std::uint32_t i = 0; i < 4; ++i) {
      cluster::Node node;
      node.group = i % 2;
      cluster.nodes.push_back(node);
      cut.push_back({i, i + 1, i});
    }
    problem.links.assign(4, std::vector<pipeline::DeviceLink>(4, {100, 0.5}));
  }
};

/// Sends both, then lets time pass; when each arrived, by way and micro-batch.
std::map<std::pair<std::size_t, std::uint64_t>, double> arrivals(const Crossing& at, std::uint32_t slices,
                                                                 const std::vector<std::pair<std::size_t, std::uint64_t>>& sent) {
  PipelineChannels channels(at.cluster, slices);
  channels.rebuild(at.problem, at.cut);
  std::multimap<Instant, std::size_t> calls;
  for (const auto& [channel, micro] : sent)
    if (const auto when = channels.send(Instant{}, channel, micro, 100)) calls.emplace(*when, channel);
  std::map<std::pair<std::size_t, std::uint64_t>, double> arrived;
  while (!calls.empty()) {
    const auto [now, channel] = *calls.begin();
    calls.erase(calls.begin());
    const PipelineChannels::SliceDone passed = channels.through(now, channel);
    if (passed.arrives) arrived[{channel, passed.micro}] = seconds(passed.arrives->time_since_epoch());
    if (passed.next) calls.emplace(*passed.next, channel);
  }
  return arrived;
}

TEST(PipelineChannels, FirstInFirstOutAtBandwidthAndLatency) {
  const auto channel = PipelineChannels::forth(0);
  for (const std::uint32_t slices : {1U, 4U}) {
    const auto arrived = arrivals({}, slices, {{channel, 0}, {channel, 1}});
    EXPECT_NEAR(arrived.at({channel, 0}), 1.5, 1e-6);
    EXPECT_NEAR(arrived.at({channel, 1}), 2.5, 1e-6);
  }
}

TEST(PipelineChannels, ForthAndBackDoNotMeet) {
  const auto arrived = arrivals({}, 4, {{PipelineChannels::forth(0), 0}, {PipelineChannels::back(0), 0}});
  for (const auto& [who, when] : arrived) EXPECT_NEAR(when, 1.5, 1e-6) << who.first;
}

TEST(PipelineChannels, WholeOnesHoldASharedUplinkUntilTheyAreThrough) {
  // Stage 0 to 1 and stage 2 to 3 both go from the first group to the second.
  const auto arrived = arrivals({}, 1, {{PipelineChannels::forth(0), 0}, {PipelineChannels::forth(2), 0}});
  EXPECT_NEAR(arrived.at({PipelineChannels::forth(0), 0}), 1.5, 1e-6);
  EXPECT_NEAR(arrived.at({PipelineChannels::forth(2), 0}), 2.5, 1e-6);
}

TEST(PipelineChannels, SlicesTakeTurnsOnASharedUplink) {
  const auto arrived = arrivals({}, 4, {{PipelineChannels::forth(0), 0}, {PipelineChannels::forth(0), 1}, {PipelineChannels::forth(2), 0}});
  EXPECT_NEAR(arrived.at({PipelineChannels::forth(0), 0}), 2.25, 1e-6) << "four slices of its own and three of the other's";
  EXPECT_NEAR(arrived.at({PipelineChannels::forth(2), 0}), 2.5, 1e-6) << "not behind the second one of the other";
  EXPECT_NEAR(arrived.at({PipelineChannels::forth(0), 1}), 3.5, 1e-6) << "the uplink is never idle";
}

}  // namespace
}  // namespace motley::sim
