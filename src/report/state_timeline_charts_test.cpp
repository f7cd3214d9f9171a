// The charts of states and groups: they say what was told, and are there only where something was.
#include <gtest/gtest.h>

#include "report/groups_chart.h"
#include "report/markup_for_tests.h"
#include "report/page.h"
#include "report/pipeline_chart.h"
#include "report/sample_for_tests.h"
#include "report/state_staleness_chart.h"
#include "report/states_chart.h"

namespace motley::report {
namespace {

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

Row with_states() {
  Row row;
  row.strategy = "adaptive";
  row.states = sample_states();
  return row;
}

Row with_groups() {
  Row row;
  row.strategy = "grouped";
  row.groups = sample_groups();
  return row;
}

TEST(StatesChart, ShowsTheStatesOfAllAndWhoStraggledWithTheReason) {
  const std::string chart = states_chart(with_states(), 0);
  EXPECT_EQ(occurrences(chart, "class=\"in-step\""), 2U);
  EXPECT_EQ(occurrences(chart, "class=\"lagging\""), 1U);
  EXPECT_EQ(occurrences(chart, "class=\"over-stale\""), 1U);
  EXPECT_EQ(occurrences(chart, "class=\"straggles\""), 1U);
  EXPECT_TRUE(has(chart, "<title>node-3 straggles for 7.00 s: its step takes far longer than the others&#39;</title>")) << chart;
  EXPECT_TRUE(has(chart, "in step 76.7 %, lagging 20.0 %, over-stale 3.3 %; cancelled 1, discarded 1")) << chart;
}

TEST(StatesChart, MarksWhatWasThrownAwayWithTheReason) {
  const std::string chart = states_chart(with_states(), 0);
  EXPECT_EQ(occurrences(chart, "class=\"cancelled\""), 1U);
  EXPECT_EQ(occurrences(chart, "class=\"discarded\""), 1U);
  EXPECT_TRUE(has(chart, "its step is cancelled: it would come too late to be of use")) << chart;
  EXPECT_TRUE(has(chart, "its contribution is discarded: it points against the way the model goes")) << chart;
}

TEST(StatesChart, IsBoundedForAnyNumberOfWorkersAndMarks) {
  Row row = with_states();
  row.states.workers.assign(500, row.states.workers[3]);
  for (int i = 0; i < 10'000; ++i) row.states.workers[0].marks.push_back({0.003 * i, true, "w"});
  const std::string chart = states_chart(row, 0);
  EXPECT_EQ(occurrences(chart, "class=\"straggles\""), 32U);
  EXPECT_LT(occurrences(chart, "class=\"cancelled\""), 400U);
  EXPECT_TRUE(has(chart, "and 468 more workers"));
}

TEST(StateStalenessChart, HasAHistogramForEachStateInWhichSomethingWasApplied) {
  const std::string chart = state_staleness_chart(with_states(), 0);
  EXPECT_EQ(occurrences(chart, "class=\"in-step\""), 2U);
  EXPECT_EQ(occurrences(chart, "class=\"lagging\""), 4U);
  EXPECT_EQ(occurrences(chart, "class=\"over-stale\""), 0U);
  EXPECT_TRUE(has(chart, "87 applied, mean 1.16, most 3")) << chart;
  EXPECT_TRUE(has(chart, "nothing applied"));
}

TEST(GroupsChart, ColoursEachWorkerByItsGroupAndDrawsARateForEach) {
  const std::string chart = groups_chart(with_groups(), 0);
  EXPECT_TRUE(has(chart, "node-1 in group 1 for 14.0 s")) << chart;
  EXPECT_EQ(occurrences(chart, "class=\"bar\""), 9U);   // seven stretches, two in the legend
  EXPECT_EQ(occurrences(chart, "class=\"mean\""), 3U);  // two rates, one in the heading
  EXPECT_TRUE(has(chart, "4 workers, up to 2 groups, changes of group: 3")) << chart;
}

Row with_pipeline() {
  Row row = sample(1, 1).rows.front();
  row.pipeline = PipelineRow{};
  row.pipeline->utilization = 0.75;
  row.pipeline->ratio_to_ideal = 0.9;
  row.pipeline->max_delay = 1;
  row.pipeline->stages = {"first", "<second>&"};
  row.pipeline->boxes = {{0, 1, 2, 0}, {1, 2, 3, 0}, {1, 3, 4, 1}, {0, 4, 5, 1}, {1, 4, 5, 2}, {0, 5, 6, 2}};
  return row;
}

TEST(PipelineChart, DrawsEveryPartInItsStagesLane) {
  const std::string chart = pipeline_chart(with_pipeline(), 0);
  EXPECT_EQ(complaint_about(chart), "");
  EXPECT_EQ(occurrences(chart, "class=\"bar\""), 9U) << "six parts, three in the legend";
  EXPECT_TRUE(has(chart, "first: gradient of weights for 1.00 s")) << chart;
  EXPECT_TRUE(has(chart, "1 updates late at most")) << chart;
}

TEST(PipelineChart, IsThereForPipelinesAlone) {
  EXPECT_TRUE(has_pipeline(with_pipeline()));
  EXPECT_FALSE(has_pipeline(sample(1, 1).rows.front()));
  Comparison compared = sample(2, 1);
  EXPECT_FALSE(has(page(compared), "id=\"pipeline-"));
  compared.rows[1] = with_pipeline();
  EXPECT_TRUE(has(page(compared), "id=\"pipeline-1\""));
}

TEST(StateTimelineCharts, EscapeNamesAndReasons) {
  Row row = with_states();
  row.groups = sample_groups();
  row.states.workers[3].name = row.groups.workers[0].name = "<w>&";
  row.states.workers[3].straggling[0].why = row.states.workers[3].marks[0].why = "\"><b>";
  for (const std::string& chart : {states_chart(row, 0), groups_chart(row, 0)}) EXPECT_EQ(complaint_about(chart), "");
}

TEST(StateTimelineCharts, AreThereOnlyWhereSomethingWasTold) {
  Comparison compared = sample(3, 1);
  for (const char* section : {"id=\"states-", "id=\"state-staleness-", "id=\"groups-"})
    EXPECT_FALSE(has(page(compared), section)) << section;
  compared.rows[1].states = sample_states();
  compared.rows[2].groups = sample_groups();
  const std::string html = page(compared);
  for (const char* once : {"id=\"states-1\"", "id=\"state-staleness-1\"", "id=\"groups-2\""}) EXPECT_TRUE(has(html, once)) << once;
  for (const char* never : {"id=\"states-0\"", "id=\"state-staleness-2\"", "id=\"groups-1\""}) EXPECT_FALSE(has(html, never)) << never;
  EXPECT_EQ(complaint_about(html), "");
}

}  // namespace
}  // namespace motley::report
