// The page as a whole: complete, well formed, alone. The last test writes samples to look at.
#include "report/page.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "report/markup_for_tests.h"
#include "report/sample_for_tests.h"
#include "report/table.h"

namespace motley::report {
namespace {

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(Page, IsWellFormedForAnyNumberOfStrategies) {
  for (const std::size_t strategies : {0, 1, 2, 14})
    for (const std::size_t seeds : {1, 3})
      EXPECT_EQ(complaint_about(page(sample(strategies, seeds))), "") << strategies << " strategies, " << seeds << " seeds";
  EXPECT_EQ(complaint_about(page({})), "");
}

TEST(Page, ShowsEachStrategyInTheTableAndInEachKindOfChart) {
  const Comparison compared = sample(5, 3);
  const std::string html = page(compared);
  for (std::size_t i = 0; i < compared.rows.size(); ++i) {
    EXPECT_TRUE(has(html, "data-name=\"" + compared.rows[i].strategy + "\""));
    EXPECT_TRUE(has(html, "id=\"timeline-" + std::to_string(i) + "\""));
    EXPECT_TRUE(has(html, "id=\"staleness-" + std::to_string(i) + "\""));
  }
  EXPECT_TRUE(has(html, "<svg class=\"chart\" id=\"accuracy\""));
  EXPECT_TRUE(has(html, "<svg class=\"chart\" id=\"target\""));
}

TEST(Page, NamesTheClusterTheSeedsAndTheCommand) {
  const Comparison compared = sample(2, 3);
  const std::string html = page(compared);
  for (const std::string& worker : compared.workers) EXPECT_TRUE(has(html, worker)) << worker;
  for (const std::string& line : compared.network) EXPECT_TRUE(has(html, line)) << line;
  for (const std::string& fault : compared.faults) EXPECT_TRUE(has(html, fault)) << fault;
  EXPECT_TRUE(has(html, "<b>Seeds</b> 0, 1, 2<"));
  EXPECT_TRUE(has(html, compared.command));
}

TEST(Page, WithoutATargetSaysNothingOfOne) {
  Comparison compared = sample(3, 2);
  compared.target_accuracy.reset();
  for (Row& row : compared.rows) {
    row.time_to_target_s = row.speedup_vs_bsp = row.speedup_vs_lb_bsp = std::nullopt;
    row.time_to_target_per_seed = {std::nullopt, std::nullopt};
  }
  const std::string html = page(compared);
  EXPECT_EQ(complaint_about(html), "");
  for (const char* word : {"time to 0", "not reached", "id=\"target\"", "<b>0.0 %"}) EXPECT_FALSE(has(html, word)) << word;
  EXPECT_TRUE(has(html, "No target was set"));
}

TEST(Page, NeedsNothingFromOutside) {
  const std::string html = page(sample(14, 3));
  for (const char* outside : {"http://", "https://", "src=", "href=", "@import", "@font-face", "<link", "<img", "<iframe", "fetch("})
    EXPECT_FALSE(has(html, outside)) << outside;
  // A target of url() is on the page itself.
  EXPECT_EQ(occurrences(html, "url("), occurrences(html, "url(#"));
}

TEST(Page, EscapesWhatOthersWrote) {
  Comparison compared = sample(2, 2);
  compared.job = compared.command = "<script>alert(1)</script>";
  compared.workers = {"\"><img>"};
  compared.rows[0].strategy = "\"><b>&";
  const std::string html = page(compared);
  EXPECT_EQ(complaint_about(html), "");
  EXPECT_EQ(occurrences(html, "<script>"), 1U);
  EXPECT_FALSE(has(html, "<img>"));
}

TEST(Page, MarksTheFastestRowOnce) { EXPECT_EQ(occurrences(page(sample(9, 3)), "<span class=\"badge\">fastest</span>"), 1U); }

TEST(Page, IsTheSameForTheSameComparison) { EXPECT_EQ(page(sample(3, 2)), page(sample(3, 2))); }

/// To look at it: MOTLEY_SAMPLE_DIR=/tmp test_report --gtest_filter='*LookedAt*'
TEST(Page, CanBeLookedAt) {
  const char* folder = std::getenv("MOTLEY_SAMPLE_DIR");
  if (!folder) GTEST_SKIP() << "set MOTLEY_SAMPLE_DIR to write sample pages there";
  const auto write = [&](const std::string& name, const std::string& text) { std::ofstream(std::string(folder) + "/" + name) << text; };
  write("report.html", page(sample(9, 5)));
  write("report-2.html", page(sample(2, 1)));
  write("report-14.html", page(sample(14, 3)));
  write("accuracy.svg", accuracy_svg(sample(9, 5)));
  write("table.txt", text_table(sample(14, 5)));
  write("table.md", markdown_table(sample(9, 5)));
}

}  // namespace
}  // namespace motley::report
