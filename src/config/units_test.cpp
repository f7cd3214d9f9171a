// Parsing of sizes and rates.
#include "config/units.h"

#include <gtest/gtest.h>

namespace motley::config {
namespace {

TEST(Units, Sizes_take_decimal_and_binary_prefixes) {
  EXPECT_EQ(parse_bytes("64KiB"), 65536);
  EXPECT_EQ(parse_bytes("1.5MB"), 1.5e6);
  EXPECT_EQ(parse_bytes("8 GiB"), 8.0 * (1 << 30));
  EXPECT_EQ(parse_bytes("4096"), 4096);
  EXPECT_EQ(parse_bytes("12B"), 12);
}

TEST(Units, Rates_count_bytes_or_bits) {
  EXPECT_EQ(parse_rate("134.6MB/s"), 134.6e6);
  EXPECT_EQ(parse_rate("1Gbit/s"), 125e6);
  EXPECT_EQ(parse_rate("1e6"), 1e6);
  EXPECT_EQ(parse_rate("2KiB/s"), 2048);
}

TEST(Units, Refuse_text_that_is_no_quantity) {
  for (const char* text : {"", "MB", "fast", "64KB/s", "1Gbit", "3 apples", "12XB", "1 2B"}) EXPECT_FALSE(parse_bytes(text)) << text;
  for (const char* text : {"", "1MB", "Gbit/s", "1Gbps!", "1/s"}) EXPECT_FALSE(parse_rate(text)) << text;
}

}  // namespace
}  // namespace motley::config
