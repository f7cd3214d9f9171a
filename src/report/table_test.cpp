// Golden texts, and the edges: too wide, empty, nobody arrived, hostile names.
#include "report/table.h"

#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "report/sample_for_tests.h"
#include "report/text.h"

namespace motley::report {
namespace {

Row row(std::string strategy, std::optional<double> time, std::vector<std::optional<double>> seeds) {
  Row made;
  made.strategy = std::move(strategy);
  made.time_to_target_s = time;
  made.time_to_target_per_seed = std::move(seeds);
  made.final_accuracy_mean = 0.8712;
  made.final_accuracy_std = 0.0021;
  made.samples_per_second = 1234;
  made.sum_of_parts_samples_per_second = 2468;
  made.wait_share = 0.5;
  made.exposed_comm_share = 0.071;
  made.bytes_total = 1.24e9;
  return made;
}

Comparison small() {
  Comparison made;
  made.job = "small";
  made.target_accuracy = 0.86;
  made.seeds = {0, 1, 2};
  made.rows = {row("bsp", 134.2, {130.1, 134.0, 139.9}), row("hps:bits=4/8,a_long=override", 61.04, {58.44, 61.0, std::nullopt}),
               row("asp", {}, {{}, {}, {}})};
  made.rows[0].speedup_vs_bsp = 1;
  made.rows[1].speedup_vs_bsp = 2.2;
  return made;
}

/// The same for a job without a target.
Comparison aimless() {
  Comparison made = small();
  made.target_accuracy.reset();
  for (Row& each : made.rows) {
    each.time_to_target_s = each.speedup_vs_bsp = std::nullopt;
    each.time_to_target_per_seed = {{}, {}, {}};
  }
  return made;
}

std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, width(line));
  return widest;
}

TEST(TextTable, WithoutATargetTheTimeToItIsADash) {
  const std::string text = text_table(aimless());
  EXPECT_NE(text.find("time to target"), std::string::npos) << text;
  for (const char* word : {"not reached", "fastest"}) EXPECT_EQ(text.find(word, text.find("bsp ")), std::string::npos) << text;
  EXPECT_EQ(markdown_table(aimless()).find("| bsp | – | – | – |") != std::string::npos, true) << markdown_table(aimless());
}

TEST(TextTable, ReadsLikeThis) {
  EXPECT_EQ(text_table(small()),
            R"(  strategy                       time to 86.0 %  vs bsp  vs lb-bsp  final accuracy     samples/s    wait   comm    bytes
────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
  bsp                    134 s (130–140)          1.00x          –    87.1 ± 0.2 %  1,234 (50 %)  50.0 %  7.1 %  1.24 GB
* hps:bits=4/8,         61.0 s (58.4–61.0, 2/3)   2.20x          –    87.1 ± 0.2 %  1,234 (50 %)  50.0 %  7.1 %  1.24 GB
  a_long=override
  asp              not reached                        –          –    87.1 ± 0.2 %  1,234 (50 %)  50.0 %  7.1 %  1.24 GB
* fastest.  time: of the mean curve (min–max of 3 seeds).  samples/s (share of the sum of the parts).  comm: not hidden.
)");
}

TEST(MarkdownTable, ReadsLikeThis) {
  EXPECT_EQ(markdown_table(small()),
            R"(| strategy | time to 86.0 % | vs bsp | vs lb-bsp | final accuracy | samples/s | wait | comm | bytes |
|---|---:|---:|---:|---:|---:|---:|---:|---:|
| bsp | 134 s (130–140) | 1.00x | – | 87.1 ± 0.2 % | 1,234 (50 %) | 50.0 % | 7.1 % | 1.24 GB |
| **hps:bits=4/8,a\_long=override** | 61.0 s (58.4–61.0, 2/3) | 2.20x | – | 87.1 ± 0.2 % | 1,234 (50 %) | 50.0 % | 7.1 % | 1.24 GB |
| asp | not reached | – | – | 87.1 ± 0.2 % | 1,234 (50 %) | 50.0 % | 7.1 % | 1.24 GB |
)");
}

TEST(TextTable, FitsOneHundredAndTwentyColumnsWithFourteenStrategies) { EXPECT_LE(widest_line(text_table(sample(14, 5))), 120U); }

TEST(TextTable, StandsWithNothingInIt) {
  EXPECT_NE(text_table({}).find("no strategies"), std::string::npos);
  EXPECT_EQ(text_table({}).find("min–max"), std::string::npos);
}

TEST(TextTable, MarksNobodyWhenNobodyArrived) {
  Comparison compared = small();
  for (Row& one : compared.rows) one.time_to_target_s = std::nullopt;
  EXPECT_EQ(text_table(compared).find("\n* bsp"), std::string::npos);
  EXPECT_EQ(markdown_table(compared).find("**"), std::string::npos);
}

TEST(TextTable, ShowsADashForWhatWasNotMeasured) {
  Comparison compared = small();
  compared.rows.resize(1);
  compared.rows[0].bytes_total = std::numeric_limits<double>::quiet_NaN();
  compared.rows[0].sum_of_parts_samples_per_second = 0;
  EXPECT_NE(markdown_table(compared).find("| 1,234 | 50.0 % | 7.1 % | – |"), std::string::npos);
}

TEST(TextTable, LetsNoNameWriteToTheTerminalOrBreakTheMarkdown) {
  Comparison compared = small();
  compared.rows[0].strategy = "x\x1b[2J|y";
  EXPECT_EQ(text_table(compared).find('\x1b'), std::string::npos);
  EXPECT_NE(markdown_table(compared).find("| x?\\[2J\\|y |"), std::string::npos);
}

}  // namespace
}  // namespace motley::report
