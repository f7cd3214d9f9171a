// bfloat16, value by value: representable values are exact, others round to the nearest, ties to even.
#include "codec/bf16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace motley::codec {
namespace {

float through(float x) {
  Bf16 codec;
  Bytes bytes;
  codec.encode(std::span(&x, 1), bytes);
  float y = 0;
  EXPECT_TRUE(codec.decode(bytes, std::span(&y, 1)).ok());
  return y;
}

TEST(Bf16, Every_bfloat16_is_exact) {
  for (std::uint32_t half = 0; half < 0x10000; ++half) {
    const auto x = std::bit_cast<float>(half << 16);
    if (std::isnan(x)) {
      EXPECT_TRUE(std::isnan(through(x))) << std::hex << half;
    } else {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(through(x)), half << 16) << std::hex << half;
    }
  }
}

TEST(Bf16, TiesGoToEven) {
  EXPECT_EQ(through(0x1.01p0F), 1.0F);
  EXPECT_EQ(through(0x1.03p0F), 0x1.04p0F);
  EXPECT_EQ(through(-0x1.03p0F), -0x1.04p0F);
  EXPECT_EQ(through(0x1.010002p0F), 0x1.02p0F) << "just above a tie";
}

TEST(Bf16, Values_that_would_round_to_infinity_become_the_largest) {
  constexpr float largest = std::numeric_limits<float>::max();
  EXPECT_EQ(through(largest), 0x1.fep127F);
  EXPECT_EQ(through(-largest), -0x1.fep127F);
  EXPECT_EQ(through(std::numeric_limits<float>::infinity()), std::numeric_limits<float>::infinity());
}

TEST(Bf16, NaN_by_its_lower_16_bits_stays_NaN) { EXPECT_TRUE(std::isnan(through(std::bit_cast<float>(0x7f800001U)))); }

}  // namespace
}  // namespace motley::codec
