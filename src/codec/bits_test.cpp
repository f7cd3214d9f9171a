// The block codec of every target, compared byte for byte with a slow implementation that follows the format one value at a time.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "base/check.h"
#include "base/rng.h"
#include "codec/bits.h"

namespace motley::codec {
namespace {

using Floats = std::vector<float>;

/// The smallest bfloat16 that is not below x >= 0, by arithmetic instead of bits.
float up_to_bf16(float x) {
  if (x == 0) return 0;
  int exponent = 0;
  std::frexp(x, &exponent);                                          // x in [0.5, 1) * 2^exponent
  const double ulp = std::ldexp(1.0, std::max(exponent - 8, -133));  // 8 significant bits; denormals share one step
  return static_cast<float>(std::min(std::ceil(x / ulp) * ulp, 0x1.fep127));
}

void twin_block(std::span<const float> x, unsigned bits, Bytes& out) {
  float most = 0;
  for (float value : x) most = std::max(most, std::abs(value));
  const float scale = up_to_bf16(most);
  const auto scale_bits = std::bit_cast<std::uint32_t>(scale) >> 16;
  out.push_back(static_cast<std::byte>(scale_bits & 0xff));
  out.push_back(static_cast<std::byte>(scale_bits >> 8));

  const float levels = static_cast<float>((1U << (bits - 1)) - 1);
  const std::size_t stride = (x.size() * bits + 7) / 8, start = out.size();
  out.resize(start + stride);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float level = scale == 0 ? 0 : std::clamp(std::nearbyint(x[i] / scale * levels), -levels, levels);
    const auto code = static_cast<unsigned>(level + levels);
    out[start + i % stride] |= static_cast<std::byte>(code << (i / stride * bits));
  }
}

Bytes twin(std::span<const float> x, unsigned bits) {
  Bytes out;
  for (; !x.empty(); x = x.subspan(std::min<std::size_t>(256, x.size())))
    twin_block(x.first(std::min<std::size_t>(256, x.size())), bits, out);
  return out;
}

class BitsTwin : public testing::TestWithParam<unsigned> {};

TEST_P(BitsTwin, WritesTheSameBytes) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Rng rng(seed, "twin");
    Floats x(rng.below(600));
    const double unit = std::pow(10.0, 80 * rng.uniform() - 44);  // from denormals to near the largest float
    for (float& value : x) value = static_cast<float>(unit * rng.normal());
    const Bytes expected = twin(x, GetParam());
    for (const Target target : targets()) {
      Bytes bytes;
      Bits(static_cast<int>(GetParam()), kernels_of(target)).encode(x, bytes);
      ASSERT_EQ(bytes, expected) << name_of(target) << ", seed " << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Widths, BitsTwin, testing::Values(2, 4, 8), testing::PrintToStringParamName());

TEST(Bits, Bytes_follow_the_format) {
  Bytes bytes;
  Bits(4).encode(Floats{1.0F, -1.0F, 0.0F, 0.5F, 2.0F}, bytes);
  // scale 2.0 = 0x4000; levels -7..7 as codes 0..14: 1 -> 3.5 -> 4 (even) -> 11, -1 -> 3, 0 -> 7, .5 -> 1.75 -> 2 -> 9, 2 -> 7 -> 14
  const Bytes drawn{std::byte{0x00}, std::byte{0x40}, std::byte{0x9b}, std::byte{0xe3}, std::byte{0x07}};
  EXPECT_EQ(bytes, drawn);
}

TEST(Bits, A_block_with_a_NaN_decodes_to_NaN_throughout) {
  Floats x(10, 1.0F), y(10);
  x[3] = std::numeric_limits<float>::infinity();
  Bytes bytes;
  Bits codec(8);
  codec.encode(x, bytes);
  Bytes drawn(12);
  drawn[0] = std::byte{0xc0};
  drawn[1] = std::byte{0x7f};
  EXPECT_EQ(bytes, drawn) << "the scale is a NaN, the codes are 0";
  ASSERT_TRUE(codec.decode(bytes, y).ok());
  EXPECT_TRUE(std::all_of(y.begin(), y.end(), [](float value) { return std::isnan(value); }));
}

TEST(Bits, OtherWidthsAreOurBug) { EXPECT_THROW(Bits(3), Bug); }

}  // namespace
}  // namespace motley::codec
