// Figures as they are spelled everywhere.
#include "report/number.h"

#include <gtest/gtest.h>

#include <limits>

namespace motley::report {
namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinite = std::numeric_limits<double>::infinity();

TEST(Number, ShowsSecondsWithThreeDigits) {
  EXPECT_EQ(show_seconds(0.0423), "0.042 s");
  EXPECT_EQ(show_seconds(6.123), "6.12 s");
  EXPECT_EQ(show_seconds(61.23), "61.2 s");
  EXPECT_EQ(show_seconds(99.97), "100 s");
  EXPECT_EQ(show_seconds(1234.5), "1,234 s");
  EXPECT_EQ(show_seconds(0), "0.00 s");
}

TEST(Number, PutsCommasBetweenThousandsOnly) {
  EXPECT_EQ(show_fixed(999, 0), "999");
  EXPECT_EQ(show_fixed(1234567.89, 1), "1,234,567.9");
  EXPECT_EQ(show_fixed(-1234, 0), "-1,234");
  EXPECT_EQ(show_fixed(-123, 0), "-123");
}

TEST(Number, HasNoNegativeZero) { EXPECT_EQ(show_fixed(-0.0001, 1), "0.0"); }

TEST(Number, ShowsSharesAsPercent) {
  EXPECT_EQ(show_percent(0.8643), "86.4 %");
  EXPECT_EQ(show_percent(0.954, 0), "95 %");
  EXPECT_EQ(show_percent(0.8712, 0.0021, 1), "87.1 ± 0.2 %");
  EXPECT_EQ(show_percent(0.8712, 0, 1), "87.1 %");
}

TEST(Number, ShowsBytesInPowersOfAThousand) {
  EXPECT_EQ(show_bytes(0), "0 B");
  EXPECT_EQ(show_bytes(999), "999 B");
  EXPECT_EQ(show_bytes(999.6), "1.00 kB");
  EXPECT_EQ(show_bytes(1.24e9), "1.24 GB");
  EXPECT_EQ(show_bytes(5e18), "5,000 PB");
}

TEST(Number, ShowsADashWhereThereIsNone) {
  for (const double none : {not_a_number, infinite, -infinite}) {
    EXPECT_EQ(show_seconds(none), "–");
    EXPECT_EQ(show_percent(none), "–");
    EXPECT_EQ(show_percent(none, 0.1, 1), "–");
    EXPECT_EQ(show_bytes(none), "–");
    EXPECT_EQ(show_times(none), "–");
  }
  EXPECT_EQ(show_times(std::nullopt), "–");
  EXPECT_EQ(show_times(2.236), "2.24x");
}

}  // namespace
}  // namespace motley::report
