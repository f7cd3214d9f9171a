// Ten lines a second and a count: the log stays readable in a flood and says how many lines there were.
#include "runtime/limited_log.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <charconv>

#include "transport/recording_callbacks_for_tests.h"

namespace motley::runtime {
namespace {

using Lines = std::vector<std::string>;

TEST(LogLimit, WritesEveryLineWhileTheyAreFew) {
  LogLimit limit(10);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(limit.say(at_seconds(0.2 * i), std::to_string(i)), Lines{std::to_string(i)});
  EXPECT_FALSE(limit.due());
}

TEST(LogLimit, WritesTenASecondAndCountsTheRest) {
  LogLimit limit(10);
  Lines written;
  for (int i = 0; i < 1'244; ++i)
    for (const std::string& line : limit.say(at_seconds(5 + 0.0005 * i), "refused")) written.push_back(line);
  EXPECT_EQ(written, Lines(10, "refused"));
  ASSERT_EQ(limit.due(), at_seconds(6));
  EXPECT_FALSE(limit.over(at_seconds(5.999)));
  EXPECT_EQ(limit.over(at_seconds(6)), "and 1,234 more in the last second");
  EXPECT_FALSE(limit.over(at_seconds(6)));
  EXPECT_FALSE(limit.due());
}

TEST(LogLimit, PutsTheCountBeforeTheNextLine) {
  LogLimit limit(1);
  EXPECT_EQ(limit.say(at_seconds(0), "a"), Lines{"a"});
  EXPECT_EQ(limit.say(at_seconds(0.1), "b"), Lines{});
  EXPECT_EQ(limit.say(at_seconds(7), "c"), (Lines{"and 1 more in the last second", "c"}));
  EXPECT_EQ(limit.say(at_seconds(7.5), "d"), Lines{});
}

TEST(LogLimit, CountsEachSecondOfAFlood) {
  LogLimit limit(10);
  std::size_t sentences = 0, counts = 0;
  for (int i = 0; i < 1'000'000; ++i)
    for (const std::string& line : limit.say(at_seconds(0.0001 * i), "refused")) (line == "refused" ? sentences : counts) += 1;
  EXPECT_EQ(sentences, 1'000U);
  EXPECT_EQ(counts, 99U);
}

TEST(LimitedLog, WritesTheCountByItself) {
  boost::asio::io_context io;
  Lines written;
  LimitedLog log(io, [&](const std::string& line) { written.push_back(line); });
  for (int i = 0; i < 25; ++i) log.say("refused");
  ASSERT_TRUE(transport::run_until(io, [&] { return written.size() > 10; }));
  EXPECT_EQ(written.back(), "and 15 more in the last second");
}

TEST(LimitedLog, CanBeDestroyedWhileACountIsDue) {
  boost::asio::io_context io;
  {
    LimitedLog log(io, [](const std::string&) {});
    for (int i = 0; i < 25; ++i) log.say("refused");
  }
  transport::run_ready(io);
}

}  // namespace
}  // namespace motley::runtime
