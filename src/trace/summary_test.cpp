// Statistics of hand-written events: shares of time, staleness, spread, curves; and the window of a timeline.
#include "trace/summary.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "trace/events_for_tests.h"
#include "trace/timeline.h"

namespace motley::trace {
namespace {

Event joined(double time_s, std::uint32_t worker, std::uint32_t node) {
  return {at_seconds(time_s), Joined{.worker = {worker}, .node = node}};
}

Event counted(double time_s, std::uint32_t worker, std::uint64_t step, std::uint64_t samples, std::uint64_t staleness) {
  return {at_seconds(time_s), Counted{.worker = {worker}, .step = {step}, .samples = samples, .staleness = staleness}};
}

/// Two workers, one round: the first receives for 1 s, computes 4, sends 1 and waits 4; the second 1, 7, 2, 0 and dies in its next step.
const std::vector<Event> one_round{
    joined(0, 0, 5),           joined(0, 1, 6),           at<Released>(1, 0, 1),      at<Released>(1, 1, 1), at<ComputeBegan>(2, 0, 1),
    at<ComputeBegan>(2, 1, 1), at<ComputeEnded>(6, 0, 1), at<Contributed>(7, 0, 1),   at<Held>(7, 0),        at<ComputeEnded>(9, 1, 1),
    at<Contributed>(11, 1, 1), counted(11, 0, 1, 30, 0),  counted(11, 1, 1, 20, 2),   at<Applied>(11),       at<Released>(11, 0, 2),
    at<Released>(11, 1, 2),    at<Left>(13, 1),           at<ComputeBegan>(14, 0, 2), at<Finished>(20),      at<Evaluated>(21),
};

template <class SinkType>
void tell(SinkType& sink, const std::vector<Event>& events) {
  for (const Event& event : events) sink.on_event(event);
}

TEST(Summary, SumsTheTimeOfEachWorkerByPhase) {
  Summary summary;
  tell(summary, one_round);
  const auto workers = summary.workers();
  ASSERT_EQ(workers.size(), 2U);
  EXPECT_EQ(workers[0].node, 5U);
  EXPECT_DOUBLE_EQ(workers[0].time.receive_s, 1 + 3);
  EXPECT_DOUBLE_EQ(workers[0].time.compute_s, 4 + 6) << "what it computed when the end came counts as computing";
  EXPECT_DOUBLE_EQ(workers[0].time.send_s, 1);
  EXPECT_DOUBLE_EQ(workers[0].time.wait_s, 1 + 4);
  EXPECT_DOUBLE_EQ(workers[0].time.total(), 20) << "from joining to the end, nothing lost";
  EXPECT_EQ(workers[0].steps, 1U);
  EXPECT_EQ(workers[0].samples, 30U);
  EXPECT_EQ(workers[0].held, 1U);
  EXPECT_DOUBLE_EQ(workers[1].time.total(), 13) << "until it left";
  EXPECT_DOUBLE_EQ(workers[1].time.receive_s, 1 + 2);
  EXPECT_DOUBLE_EQ(summary.time().total(), 33);
  EXPECT_DOUBLE_EQ(summary.time().compute_s, 10 + 7);
  EXPECT_DOUBLE_EQ(summary.ended_s(), 21);
}

TEST(Summary, CountsStalenessByVersions) {
  Summary summary;
  tell(summary, one_round);
  EXPECT_EQ(summary.staleness(), (std::vector<std::uint64_t>{1, 0, 1}));
}

TEST(Summary, FinishSpreadIsRelativeToMeanComputeTime) {
  Summary summary;
  tell(summary, one_round);
  EXPECT_DOUBLE_EQ(summary.finish_spread(), (9.0 - 6.0) / ((4.0 + 7.0) / 2));
  EXPECT_EQ(Summary{}.finish_spread(), 0);
}

TEST(Summary, FinishSpreadLeavesOutTheFirstFifth) {
  Summary summary;
  tell(summary, {joined(0, 0, 0), joined(0, 1, 0)});
  double now = 0;
  for (std::uint64_t round = 1; round <= 5; ++round) {
    const double late = round == 1 ? 10 : 0;
    tell(summary, {at<Released>(now, 0, round), at<Released>(now, 1, round), at<Contributed>(now + 1, 0, round),
                   at<Contributed>(now + 1 + late, 1, round), counted(now + 1 + late, 0, round, 1, 0),
                   counted(now + 1 + late, 1, round, 1, 0), at<Applied>(now + 1 + late)});
    now += 1 + late;
  }
  EXPECT_EQ(summary.finish_spread(), 0);
}

TEST(Summary, ARefusedContributionEndsItsSending) {
  Summary summary;
  tell(summary, {joined(0, 0, 0), at<Released>(0, 0, 1), at<ComputeBegan>(1, 0, 1), at<ComputeEnded>(3, 0, 1), at<Dropped>(4, 0, 1),
                 at<Finished>(9)});
  EXPECT_DOUBLE_EQ(summary.time().send_s, 1);
  EXPECT_DOUBLE_EQ(summary.time().wait_s, 5) << "after the refusal it waits for the round";
  EXPECT_EQ(summary.workers()[0].steps, 0U);
}

TEST(Summary, MembershipsOfOneNodeAreSeparate) {
  Summary summary;
  tell(summary, {joined(0, 0, 3), at<Left>(2, 0), joined(5, 1, 3), at<Finished>(6)});
  const auto workers = summary.workers();
  ASSERT_EQ(workers.size(), 2U);
  EXPECT_EQ(workers[0].node, workers[1].node);
  EXPECT_DOUBLE_EQ(workers[0].time.total(), 2);
  EXPECT_DOUBLE_EQ(workers[1].time.total(), 1);
}

// Curves -------------------------------------------------------------------------------------------------------------------------------

std::vector<Point> curve(const std::vector<double>& accuracies) {
  std::vector<Point> points;
  for (std::size_t i = 0; i < accuracies.size(); ++i)
    points.push_back({10.0 * static_cast<double>(i + 1), 100 * (i + 1), accuracies[i], 1 - accuracies[i]});
  return points;
}

TEST(Curve, IsMadeOfTheEvaluations) {
  Summary summary;
  summary.on_event({at_seconds(12), Evaluated{.samples = 640, .accuracy = 0.5, .loss = 1.5}});
  ASSERT_EQ(summary.curve().size(), 1U);
  EXPECT_EQ(summary.curve()[0].time_s, 12);
  EXPECT_EQ(summary.curve()[0].samples, 640U);
  EXPECT_EQ(summary.curve()[0].accuracy, 0.5);
  EXPECT_EQ(summary.curve()[0].loss, 1.5);
}

TEST(Curve, IsSmoothedOverThreeEvaluations) {
  const auto smooth = smoothed(curve({0.3, 0.6, 0.9, 0.0}));
  EXPECT_DOUBLE_EQ(smooth[0].accuracy, 0.3);
  EXPECT_DOUBLE_EQ(smooth[1].accuracy, 0.45);
  EXPECT_DOUBLE_EQ(smooth[2].accuracy, 0.6);
  EXPECT_DOUBLE_EQ(smooth[3].accuracy, 0.5);
  EXPECT_DOUBLE_EQ(smooth[3].loss, 0.5);
  EXPECT_EQ(smooth[3].time_s, 40) << "time is not smoothed";
}

TEST(TimeToTarget, InterpolatesBetweenEvaluations) {
  // Smoothed: 0.3, 0.45, 0.6, 0.7
  EXPECT_DOUBLE_EQ(*time_to_target(curve({0.3, 0.6, 0.9, 0.6}), 0.525), 25);
  EXPECT_DOUBLE_EQ(*time_to_target(curve({0.3, 0.6, 0.9, 0.6}), 0.6), 30);
}

TEST(TimeToTarget, OneHighEvaluationIsNotEnough) { EXPECT_EQ(time_to_target(curve({0.5, 0.5, 0.9, 0.5, 0.5}), 0.7), std::nullopt); }

TEST(TimeToTarget, IsTheFirstPointOrNone) {
  EXPECT_DOUBLE_EQ(*time_to_target(curve({0.8, 0.9}), 0.7), 10);
  EXPECT_EQ(time_to_target(curve({0.1, 0.2}), 0.7), std::nullopt);
  EXPECT_EQ(time_to_target({}, 0.7), std::nullopt);
}

TEST(MeanOf, IsAsLongAsTheShortestCurve) {
  std::vector<Point> late = curve({0.4, 0.8});
  late[0].time_s = 20;
  const auto mean = mean_of({curve({0.2, 0.4, 0.6}), late});
  ASSERT_EQ(mean.size(), 2U);
  EXPECT_DOUBLE_EQ(mean[0].accuracy, 0.3);
  EXPECT_DOUBLE_EQ(mean[0].time_s, 15);
  EXPECT_EQ(mean[0].samples, 100U);
  EXPECT_DOUBLE_EQ(mean[1].accuracy, 0.6);
  EXPECT_TRUE(mean_of({}).empty());
}

// Timeline -----------------------------------------------------------------------------------------------------------------------------

/// "wait 0-1, receive 1-2" of one lane.
std::string text(const Timeline::Lane& lane) {
  static constexpr std::array<const char*, 4> names{"compute", "send", "wait", "receive"};
  std::string result;
  for (const Stretch& stretch : lane.stretches)
    result += (result.empty() ? "" : ", ") + std::string(names.at(static_cast<std::size_t>(stretch.phase))) + " " +
              std::to_string(static_cast<int>(seconds(stretch.from))) + "-" + std::to_string(static_cast<int>(seconds(stretch.to)));
  return result;
}

TEST(Timeline, HasThePhasesOfEachWorker) {
  Timeline timeline(at_seconds(0), from_seconds(100));
  tell(timeline, one_round);
  ASSERT_EQ(timeline.lanes().size(), 2U);
  EXPECT_EQ(timeline.lanes()[1].node, 6U);
  EXPECT_EQ(text(timeline.lanes()[0]), "wait 0-1, receive 1-2, compute 2-6, send 6-7, wait 7-11, receive 11-14, compute 14-20");
  EXPECT_EQ(text(timeline.lanes()[1]), "wait 0-1, receive 1-2, compute 2-9, send 9-11, receive 11-13") << "nothing after it left";
}

TEST(Timeline, KeepsOnlyTheWindow) {
  Timeline timeline(at_seconds(5), from_seconds(7));
  tell(timeline, one_round);
  EXPECT_EQ(text(timeline.lanes()[0]), "compute 5-6, send 6-7, wait 7-11, receive 11-12");
  EXPECT_EQ(text(timeline.lanes()[1]), "compute 5-9, send 9-11, receive 11-12");
}

}  // namespace
}  // namespace motley::trace
