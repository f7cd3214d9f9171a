// The winner of a comparison and the remarks.
#include "report/headline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "report/ranking.h"

namespace motley::report {
namespace {

Row row(std::string strategy, std::optional<double> time, double accuracy = 0.87) {
  Row made;
  made.strategy = std::move(strategy);
  made.time_to_target_s = time;
  made.final_accuracy_mean = accuracy;
  made.final_accuracy_std = 0.002;
  return made;
}

Comparison comparison(std::vector<Row> rows) {
  Comparison made;
  made.target_accuracy = 0.86;
  made.seeds = {0, 1, 2};
  made.rows = std::move(rows);
  return made;
}

bool remarks_on(const Comparison& compared, std::string_view words) {
  const auto remarks = headline(compared).remarks;
  return std::any_of(remarks.begin(), remarks.end(), [&](const std::string& remark) { return remark.find(words) != std::string::npos; });
}

TEST(Ranking, PutsTheSoonestFirstAndThoseWhoNeverArriveLastByAccuracy) {
  const Comparison compared = comparison({row("late", 90), row("poor", {}, 0.5), row("near", {}, 0.85), row("soon", 30)});
  EXPECT_EQ(ranking(compared), (std::vector<std::size_t>{3, 0, 2, 1}));
  EXPECT_EQ(fastest(compared), 3U);
}

TEST(Ranking, TakesNoSenselessTimeForAnArrival) {
  const Comparison compared = comparison({row("nan", std::numeric_limits<double>::quiet_NaN()), row("negative", -1), row("real", 80)});
  EXPECT_EQ(fastest(compared), 2U);
  EXPECT_EQ(fastest(comparison({row("a", {})})), std::nullopt);
  EXPECT_EQ(fastest(comparison({})), std::nullopt);
}

TEST(Ranking, MeasuresTheSpreadOfTheSeedsThatArrived) {
  Row one = row("a", 50);
  one.time_to_target_per_seed = {52, std::nullopt, 48, 55};
  const SeedSpread spread = seed_spread(one);
  EXPECT_EQ(spread.seeds, 4U);
  EXPECT_EQ(spread.reached, 3U);
  EXPECT_EQ(spread.least_s, 48);
  EXPECT_EQ(spread.most_s, 55);
}

TEST(Headline, NamesTheWinnerAndBothBaselines) {
  Comparison compared = comparison({row("bsp", 136), row("lb-bsp", 61), row("hps", 48.6)});
  compared.rows[2].speedup_vs_bsp = 2.8;
  compared.rows[2].speedup_vs_lb_bsp = 1.255;
  EXPECT_EQ(headline(compared).result, "hps reaches 86.0 % in 48.6 s, 2.8x sooner than bsp and 1.25x sooner than lb-bsp.");
}

TEST(Headline, DoesNotCompareABaselineWithItself) {
  Comparison compared = comparison({row("bsp", 134), row("lb-bsp", 61)});
  compared.rows[1].speedup_vs_bsp = 2.2;
  compared.rows[1].speedup_vs_lb_bsp = 1;
  EXPECT_EQ(headline(compared).result, "lb-bsp reaches 86.0 % in 61.0 s, 2.2x sooner than bsp.");
}

TEST(Headline, SaysWhichBaselineNeverArrives) {
  Comparison compared = comparison({row("bsp", {}), row("lb-bsp", 61), row("hps", 30.5)});
  compared.rows[2].speedup_vs_lb_bsp = 2;
  EXPECT_EQ(headline(compared).result, "hps reaches 86.0 % in 30.5 s, 2.0x sooner than lb-bsp; bsp does not reach it.");
}

TEST(Headline, SaysThatNobodyArrived) {
  EXPECT_EQ(headline(comparison({row("bsp", {}, 0.81), row("asp", {}, 0.84)})).result,
            "No strategy reached 86.0 %; asp came nearest with 84.0 ± 0.2 % at the end.");
  EXPECT_EQ(headline(comparison({})).result, "No strategy was compared.");
}

TEST(Headline, OfOneAloneNothingIsSaidAsOfTheBestOfMany) {
  EXPECT_EQ(headline(comparison({row("bsp", {}, 0.81)})).result, "bsp did not reach 86.0 %: 81.0 ± 0.2 % at the end.");
  Comparison aimless = comparison({row("bsp", {}, 0.81)});
  aimless.target_accuracy.reset();
  EXPECT_EQ(headline(aimless).result, "No target was set; bsp ends with 81.0 ± 0.2 %.");
  aimless.rows[0].final_accuracy_mean = std::numeric_limits<double>::quiet_NaN();
  aimless.rows[0].samples_per_second = 700;
  EXPECT_EQ(headline(aimless).result, "No target was set; bsp gets through 700 samples a second.");
}

TEST(Headline, CallsOverlappingSeedsCloseToATie) {
  Comparison compared = comparison({row("hps", 48), row("adaptive", 50)});
  compared.rows[0].time_to_target_per_seed = {46, 48, 51};
  compared.rows[1].time_to_target_per_seed = {49, 50, 52};
  EXPECT_TRUE(remarks_on(compared, "close to a tie"));
  compared.rows[1].time_to_target_per_seed = {51.5, 52, 53};
  EXPECT_FALSE(remarks_on(compared, "close to a tie"));
}

TEST(Headline, DoesNotHideAHigherFinalAccuracyOfAnother) {
  EXPECT_TRUE(
      remarks_on(comparison({row("hps", 48, 0.865), row("bsp", 130, 0.880)}), "bsp ends higher: 88.0 ± 0.2 % against 86.5 ± 0.2 %"));
  EXPECT_FALSE(remarks_on(comparison({row("hps", 48, 0.879), row("bsp", 130, 0.880)}), "ends higher"));
}

TEST(Headline, WarnsOfASingleSeed) {
  Comparison compared = comparison({row("hps", 48)});
  EXPECT_FALSE(remarks_on(compared, "One seed"));
  compared.seeds = {0};
  EXPECT_TRUE(remarks_on(compared, "One seed"));
}

}  // namespace
}  // namespace motley::report
