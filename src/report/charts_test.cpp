// Every chart on normal, empty, single-point and all-null data: the drawing is well formed and says what there is to say.
#include <gtest/gtest.h>

#include <limits>

#include "report/accuracy_chart.h"
#include "report/groups_chart.h"
#include "report/history_chart.h"
#include "report/markup_for_tests.h"
#include "report/sample_for_tests.h"
#include "report/staleness_chart.h"
#include "report/state_staleness_chart.h"
#include "report/states_chart.h"
#include "report/style.h"
#include "report/target_chart.h"
#include "report/timeline_chart.h"

namespace motley::report {
namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// Three strategies of which nothing was measured.
Comparison all_null() {
  Comparison made;
  made.target_accuracy = 0.86;
  made.seeds = {0};
  for (const char* name : {"bsp", "lb-bsp", "hps"}) {
    Row row;
    row.strategy = name;
    row.curves = {{}};
    row.time_to_target_per_seed = {std::nullopt};
    made.rows.push_back(row);
  }
  return made;
}

Comparison all_nan() {
  Comparison made = sample(3, 2);
  made.target_accuracy = not_a_number;
  for (Row& row : made.rows) {
    row.time_to_target_s = not_a_number;
    row.time_to_target_per_seed = {not_a_number, not_a_number};
    row.wait_share = row.final_accuracy_mean = row.final_accuracy_std = not_a_number;
    for (Point& point : row.mean_curve) point.accuracy = not_a_number;
    for (auto& curve : row.curves)
      for (Point& point : curve) point.time_s = not_a_number;
    for (Lane& lane : row.timeline)
      for (Span& span : lane.spans) span.end_s = not_a_number;
  }
  return made;
}

/// All that a page draws of `comparison`, and the file for the README.
std::vector<std::string> drawings(const Comparison& comparison) {
  std::vector<std::string> all{accuracy_chart(comparison), accuracy_svg(comparison), target_chart(comparison), phase_legend(),
                               states_legend()};
  for (std::size_t i = 0; i < comparison.rows.size(); ++i) {
    all.push_back(timeline_chart(comparison.rows[i], i, common_window_s(comparison)));
    all.push_back(staleness_chart(comparison.rows[i], i, staleness_bars(comparison)));
    all.push_back(history_chart(comparison.rows[i], i));
    all.push_back(state_staleness_chart(comparison.rows[i], i));
    all.push_back(groups_chart(comparison.rows[i], i));
    if (has_states(comparison.rows[i])) all.push_back(states_chart(comparison.rows[i], i));
  }
  return all;
}

void expect_sound(const Comparison& comparison) {
  for (const std::string& drawing : drawings(comparison)) {
    EXPECT_EQ(complaint_about(drawing), "");
    EXPECT_TRUE(has(drawing, "<title")) << drawing.substr(0, 200);
    EXPECT_TRUE(has(drawing, "<desc")) << drawing.substr(0, 200);
    EXPECT_FALSE(has(drawing, "\"nan") || has(drawing, "\"-nan") || has(drawing, "\"inf")) << drawing.substr(0, 200);
  }
}

TEST(Charts, AreSoundForAnyNumberOfStrategiesAndSeeds) {
  for (const std::size_t strategies : {1, 2, 7, 14})
    for (const std::size_t seeds : {1, 3}) expect_sound(sample(strategies, seeds));
}

TEST(Charts, AreSoundWithoutData) {
  expect_sound({});
  expect_sound(all_null());
  expect_sound(all_nan());
}

TEST(Charts, AreSoundWithASinglePoint) {
  Comparison compared = sample(2, 1);
  for (Row& row : compared.rows) {
    row.mean_curve.resize(1);
    row.curves[0].resize(1);
    for (Lane& lane : row.timeline) lane.spans.resize(1);
    row.staleness = {1};
  }
  expect_sound(compared);
  EXPECT_TRUE(has(accuracy_chart(compared), "<circle"));
}

TEST(Charts, EscapeTheNamesOfStrategiesAndWorkers) {
  Comparison compared = sample(2, 2);
  compared.job = "</svg><script>";
  compared.rows[1].strategy = "<i>&\"'";
  compared.rows[1].timeline[0].worker = "<w>&";
  expect_sound(compared);
}

TEST(AccuracyChart, DrawsOneMeanPerStrategyAndOneFaintLinePerSeed) {
  const std::string chart = accuracy_chart(sample(4, 3));
  EXPECT_EQ(occurrences(chart, "class=\"seed\""), 12U);
  EXPECT_EQ(occurrences(chart, "class=\"mean\""), 8U);  // each once more in the legend
  EXPECT_TRUE(has(chart, "target 86.0 %"));
}

TEST(AccuracyChart, ATargetThatNobodyCameNearDoesNotCoverTheNameOfTheAxis) {
  Comparison compared = sample(1, 1);
  compared.target_accuracy = 0.9999;
  const std::string chart = accuracy_chart(compared);
  const auto height_of = [&](const std::string& label) {
    const std::size_t text = chart.rfind("<text", chart.find(label));
    return std::stod(chart.substr(chart.find("y=\"", text) + 3));
  };
  EXPECT_GT(height_of(">target "), height_of(">accuracy") + 10);
}

TEST(AccuracyChart, BreaksTheLineWhereAnEvaluationIsMissing) {
  Comparison compared = sample(1, 1);
  compared.rows[0].curves.clear();
  compared.rows[0].mean_curve[20].accuracy = not_a_number;
  EXPECT_EQ(occurrences(accuracy_chart(compared), "class=\"mean\""), 3U);
}

TEST(AccuracyChart, SaysWhenNothingWasEvaluated) { EXPECT_TRUE(has(accuracy_chart(all_null()), "No evaluation was recorded.")); }

TEST(AccuracyChart, LeavesOutPointsThatNoEyeCouldTellApart) {
  Comparison compared = sample(1, 1);
  Row& row = compared.rows[0];
  row.curves.clear();
  row.time_to_target_s = std::nullopt;
  row.mean_curve.clear();
  for (int i = 0; i < 100'000; ++i) row.mean_curve.push_back({i * 0.001, 0, 0.5 + i * 1e-6, 0});
  EXPECT_LT(accuracy_chart(compared).size(), 60'000U);
}

TEST(AccuracySvg, StandsAloneWithItsStyleAndGround) {
  const std::string svg = accuracy_svg(sample(3, 3));
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_TRUE(has(svg, "<style>"));
  EXPECT_TRUE(has(svg, "class=\"ground\""));
  EXPECT_TRUE(has(svg, "prefers-color-scheme:dark"));
  EXPECT_EQ(occurrences(svg, "http"), 1U);
}

TEST(TargetChart, DrawsABarAWhiskerAndTheSeeds) {
  Comparison compared = sample(1, 1);
  compared.rows[0].time_to_target_s = 50;
  compared.rows[0].time_to_target_per_seed = {48, 55, std::nullopt};
  const std::string chart = target_chart(compared);
  EXPECT_EQ(occurrences(chart, "class=\"bar\""), 1U);
  EXPECT_EQ(occurrences(chart, "class=\"whisker\""), 3U);
  EXPECT_EQ(occurrences(chart, "class=\"one-seed\""), 2U);
}

TEST(TargetChart, DrawsNoWhiskerForASingleSeed) { EXPECT_EQ(occurrences(target_chart(sample(2, 1)), "class=\"whisker\""), 0U); }

TEST(TargetChart, NamesThoseWhoDidNotArrive) {
  EXPECT_EQ(occurrences(target_chart(all_null()), ">not reached<"), 3U);
  EXPECT_EQ(occurrences(target_chart(all_null()), "class=\"bar\""), 0U);
}

Row worker_for(double seconds) {
  Row row;
  row.timeline = {{"w", {{10, 10 + seconds, Phase::compute}}}};
  return row;
}

TEST(TimelineChart, SharesOneScaleWhileTheWindowsAreAlike) {
  Comparison compared;
  compared.rows = {worker_for(2), worker_for(8)};
  EXPECT_EQ(common_window_s(compared), 8.0);
  compared.rows.push_back(worker_for(0.1));
  EXPECT_EQ(common_window_s(compared), std::nullopt);
  EXPECT_EQ(common_window_s({}), std::nullopt);
}

TEST(TimelineChart, DrawsEveryPhaseAndCutsWhatLeavesTheWindow) {
  Row row;
  row.timeline = {
      {"w", {{0, 1, Phase::compute}, {1, 2, Phase::send}, {2, 3, Phase::wait}, {3, 4, Phase::receive}, {9, 10, Phase::compute}}}};
  const std::string chart = timeline_chart(row, 0, 5.0);
  for (const char* once : {"class=\"compute\"", "class=\"send\"", "class=\"wait\"", "class=\"receive\""})
    EXPECT_EQ(occurrences(chart, once), 1U) << once;
}

TEST(TimelineChart, IsBoundedForAnyNumberOfWorkers) {
  Row row;
  for (int i = 0; i < 500; ++i) row.timeline.push_back({"w" + std::to_string(i), {{0, 1, Phase::compute}}});
  const std::string chart = timeline_chart(row, 0, std::nullopt);
  EXPECT_EQ(occurrences(chart, "class=\"compute\""), 32U);
  EXPECT_TRUE(has(chart, "and 468 more workers"));
}

TEST(StalenessChart, ShowsSharesAndGathersTheTail) {
  Row row;
  row.staleness = {1, 3};
  EXPECT_TRUE(has(staleness_chart(row, 0, 5), "mean 0.75, most 1"));
  EXPECT_TRUE(has(staleness_chart(row, 0, 5), "1 late: 75.0 %"));
  row.staleness = std::vector<std::uint64_t>(1000, 1);
  Comparison compared;
  compared.rows = {row};
  EXPECT_EQ(staleness_bars(compared), 24U);
  EXPECT_TRUE(has(staleness_chart(row, 0, 24), "23+ late: 97.7 %"));
}

TEST(StalenessChart, SaysWhenNothingWasApplied) {
  Row row;
  row.staleness = {0, 0};
  EXPECT_TRUE(has(staleness_chart(row, 0, 5), "No contribution was applied."));
}

TEST(Style, TellsFourteenStrategiesApartByColourAndDash) {
  std::set<std::string> looks;
  for (std::size_t i = 0; i < 14; ++i) looks.insert(strategy_class(i));
  EXPECT_EQ(looks.size(), 14U);
}

TEST(HistoryChart, SaysHowMuchWentToOthersAndNamesTheWorkers) {
  const Comparison made = sample(1, 1);
  const std::string chart = history_chart(made.rows[0], 0);
  EXPECT_TRUE(has(chart, "1.0 % of the samples went to others")) << chart;
  for (const char* worker : {"node-0", "node-1", "node-2", "node-3"}) EXPECT_TRUE(has(chart, worker)) << worker;
}

TEST(HistoryChart, IsThereOnlyWhereSomethingWasDecided) {
  Row row = sample(1, 1).rows[0];
  EXPECT_TRUE(has_history(row));
  row.returned_samples = 0;
  EXPECT_TRUE(has_history(row)) << "batches and bits change";
  for (WorkerHistory& history : row.histories) history.shares.resize(5);
  EXPECT_FALSE(has_history(row));
}

}  // namespace
}  // namespace motley::report
