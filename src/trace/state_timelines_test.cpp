// Timelines of states and groups: exact while there are few changes, small for any number of them.
#include "trace/state_timelines.h"

#include <gtest/gtest.h>

#include <vector>

#include "trace/events_for_tests.h"

namespace motley::trace {
namespace {

using Stretches = std::vector<StateTimeline::Stretch>;

Event joined(double time_s, std::uint32_t worker, std::uint32_t node = 0) {
  return {at_seconds(time_s), Joined{.worker = {worker}, .node = node}};
}
Event straggles(double time_s, std::uint32_t worker, bool now, std::uint8_t why) {
  return {at_seconds(time_s), Straggles{.worker = {worker}, .why = why, .now = now}};
}
Event grouped(double time_s, std::uint32_t worker, std::uint32_t group) {
  return {at_seconds(time_s), Grouped{.worker = {worker}, .group = group}};
}
Event state(double time_s, std::uint8_t entered) { return {at_seconds(time_s), StateEntered{.state = entered}}; }
Event counted(double time_s, std::uint32_t worker, std::uint64_t staleness, double weight = 1) {
  return {at_seconds(time_s), Counted{.worker = {worker}, .staleness = staleness, .weight = weight}};
}
Event applied(double time_s, double rate) { return {at_seconds(time_s), Applied{.rate = rate}}; }

StateTimelines two_workers() {
  StateTimelines state_timelines;
  state_timelines.on_event(joined(0, 0, 7));
  state_timelines.on_event(joined(0, 1, 8));
  return state_timelines;
}

TEST(StateTimeline, EndsAStretchWhereTheNextBegins) {
  StateTimeline state_timeline;
  state_timeline.change(1, 4);
  state_timeline.change(2, 4);
  state_timeline.change(3, std::nullopt);
  state_timeline.change(5, 6);
  EXPECT_EQ(state_timeline.stretches(8), (Stretches{{1, 3, 4}, {5, 8, 6}}));
  EXPECT_EQ(state_timeline.lasted(8), (std::map<std::uint32_t, double>{{4, 2.0}, {6, 3.0}}));
}

TEST(StateTimeline, DropsValuesThatLastForNoTime) {
  StateTimeline state_timeline;
  state_timeline.change(1, 4);
  state_timeline.change(2, 5);
  state_timeline.change(2, 4);
  state_timeline.change(1.5, 6);  // out of order
  EXPECT_EQ(state_timeline.stretches(3), (Stretches{{1, 2, 4}, {2, 3, 6}}));
}

TEST(StateTimeline, StaysSmallAndExactInSumForManyChanges) {
  StateTimeline state_timeline;
  for (int i = 0; i < 100'000; ++i) state_timeline.change(i, i % 2 == 0 ? StateTimeline::Value(3) : std::nullopt);
  const auto seen = state_timeline.stretches(100'000);
  EXPECT_LT(seen.size(), StateTimeline::max_changes);
  EXPECT_EQ(seen.front().from_s, 0);
  EXPECT_EQ(state_timeline.lasted(100'000).at(3), 50'000);
}

TEST(StateTimeline, KeepsLongStretchesWhenShortOnesMerge) {
  StateTimeline state_timeline;
  state_timeline.change(0, 1);
  for (int i = 0; i < 10'000; ++i) state_timeline.change(1000 + 0.01 * i, i % 2 == 0 ? 2 : 3);
  state_timeline.change(1100, 0);
  const auto seen = state_timeline.stretches(2000);
  EXPECT_EQ(seen.front(), (StateTimeline::Stretch{0, seen.front().to_s, 1}));
  EXPECT_EQ(seen.front().to_s, 1000);
  EXPECT_EQ(seen.back(), (StateTimeline::Stretch{1100, 2000, 0}));
}

TEST(StateTimelines, HaveTimeAndReasonOfEachStraggler) {
  StateTimelines state_timelines = two_workers();
  state_timelines.on_event(straggles(2, 1, true, 16));
  state_timelines.on_event(straggles(6, 1, false, 18));
  state_timelines.on_event(at<Finished>(8));
  const auto workers = state_timelines.workers();
  ASSERT_EQ(workers.size(), 2U);
  EXPECT_TRUE(state_timelines.has_states());
  EXPECT_EQ(workers[1].node, 8U);
  EXPECT_TRUE(workers[0].straggling.empty());
  EXPECT_EQ(workers[1].straggling, (Stretches{{2, 6, 16}}));
  EXPECT_EQ(workers[1].straggled_s, 4);
}

TEST(StateTimelines, AWorkerThatLeftIsNoStragglerAndInNoGroup) {
  StateTimelines state_timelines = two_workers();
  state_timelines.on_event(straggles(2, 1, true, 16));
  state_timelines.on_event(grouped(3, 1, 2));
  state_timelines.on_event(at<Left>(5, 1));
  state_timelines.on_event(at<Finished>(8));
  EXPECT_EQ(state_timelines.workers()[1].straggling, (Stretches{{2, 5, 16}}));
  EXPECT_EQ(state_timelines.workers()[1].groups, (Stretches{{3, 5, 2}}));
}

TEST(StateTimelines, BeginInStepAndCountStalenessByState) {
  StateTimelines state_timelines = two_workers();
  state_timelines.on_event(counted(1, 0, 0));
  state_timelines.on_event(state(4, 1));
  state_timelines.on_event(counted(5, 1, 3));
  state_timelines.on_event(counted(5, 1, 3));
  state_timelines.on_event(state(6, 2));
  state_timelines.on_event(counted(6, 1, 1'000'000));
  state_timelines.on_event(at<Finished>(10));
  EXPECT_EQ(state_timelines.states(), (Stretches{{0, 4, 0}, {4, 6, 1}, {6, 10, 2}}));
  EXPECT_EQ(state_timelines.state_lasted_s(), (std::array<double, 3>{4, 2, 4}));
  EXPECT_EQ(state_timelines.staleness()[0], (StateTimelines::Delays{1}));
  EXPECT_EQ(state_timelines.staleness()[1], (StateTimelines::Delays{0, 0, 0, 2}));
  EXPECT_EQ(state_timelines.staleness()[2].size(), StateTimelines::most_delays);
}

TEST(StateTimelines, HaveNoStateWithoutMembers) {
  StateTimelines state_timelines;
  state_timelines.on_event(joined(1, 0));
  state_timelines.on_event(state(2, 2));
  state_timelines.on_event(at<Left>(3, 0));
  state_timelines.on_event(joined(5, 1));
  state_timelines.on_event(at<Finished>(6));
  EXPECT_EQ(state_timelines.states(), (Stretches{{1, 2, 0}, {2, 3, 2}, {5, 6, 0}}));
}

TEST(StateTimelines, MarkAndCountCancelledAndDiscarded) {
  StateTimelines state_timelines = two_workers();
  state_timelines.on_event({at_seconds(1), Cancelled{.worker = {1}, .why = 14}});
  for (int i = 0; i < 10'000; ++i) state_timelines.on_event({at_seconds(2 + i), Discarded{.worker = {1}, .why = 13}});
  const StateTimelines::Worker worker = state_timelines.workers()[1];
  EXPECT_EQ(worker.cancelled, 1U);
  EXPECT_EQ(worker.discarded, 10'000U);
  EXPECT_LT(worker.marks.size(), 512U);
  EXPECT_TRUE(worker.marks[0].cancelled);
  EXPECT_EQ(worker.marks[0].why, 14);
  EXPECT_FALSE(worker.marks[1].cancelled);
}

TEST(StateTimelines, AssignAnUpdateToTheGroupOfMostWeight) {
  StateTimelines state_timelines = two_workers();
  state_timelines.on_event(grouped(0, 0, 0));
  state_timelines.on_event(grouped(0, 1, 1));
  state_timelines.on_event(counted(1, 0, 0, 0.25));
  state_timelines.on_event(applied(1, 0.1));
  state_timelines.on_event(counted(2, 0, 0, 0.25));
  state_timelines.on_event(counted(2, 1, 0, 0.75));
  state_timelines.on_event(applied(2, 0.1));
  const auto rates = state_timelines.rates();
  EXPECT_TRUE(state_timelines.has_groups());
  ASSERT_EQ(rates.size(), 2U);
  EXPECT_DOUBLE_EQ(rates.at(0).at(0).rate, 0.025);
  EXPECT_DOUBLE_EQ(rates.at(1).at(0).rate, 0.1);
  EXPECT_EQ(rates.at(1).at(0).time_s, 2);
}

TEST(StateTimelines, KnowARunWithoutStatesAndGroups) {
  StateTimelines state_timelines = two_workers();
  state_timelines.on_event(counted(1, 0, 0));
  state_timelines.on_event(applied(1, 0.1));
  state_timelines.on_event(at<Finished>(2));
  EXPECT_FALSE(state_timelines.has_states());
  EXPECT_FALSE(state_timelines.has_groups());
  EXPECT_TRUE(state_timelines.rates().empty());
}

}  // namespace
}  // namespace motley::trace
