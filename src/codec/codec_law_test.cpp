// Properties of every codec: sizes, errors within the bound, finite exactly when the input is, bytes of a wrong size refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/rng.h"
#include "codec/codec.h"
#include "codec/magnitude.h"

namespace motley::codec {
namespace {

using Floats = std::vector<float>;
constexpr std::size_t block = 256;
constexpr float largest = std::numeric_limits<float>::max();
constexpr float smallest = std::numeric_limits<float>::denorm_min();
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

class CodecLaw : public testing::TestWithParam<int> {
 protected:
  int bits = GetParam();
  std::unique_ptr<Codec> codec = std::move(make(bits)).value();

  Floats round_trip(const Floats& x) {
    Bytes bytes;
    codec->encode(x, bytes);
    EXPECT_EQ(bytes.size(), codec->encoded_bytes(x.size()));
    Floats y(x.size());
    EXPECT_TRUE(codec->decode(bytes, y).ok());
    return y;
  }

  /// The bound that the codec's header states, for a value of a block whose largest magnitude is `most`.
  [[nodiscard]] double bound(float value, float most) const {
    const double x = std::abs(static_cast<double>(value));
    if (bits == 32) return 0;
    if (bits == 16) return std::max(x * 0x1p-8, 0x1p-134);
    const double levels = (1 << (bits - 1)) - 1;
    const double scale = std::max(static_cast<double>(most) * (1 + 0x1p-7), 0x1p-133);
    return scale / (2 * levels) * (1 + 0x1p-14) + 0x1p-149;
  }

  void expect_within_bound(const Floats& x) {
    const Floats y = round_trip(x);
    for (std::size_t begin = 0; begin < x.size(); begin += block) {
      const std::size_t end = std::min(x.size(), begin + block);
      float most = 0;
      for (std::size_t i = begin; i < end; ++i) most = std::max(most, std::abs(x[i]));
      for (std::size_t i = begin; i < end; ++i)
        ASSERT_LE(std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i])), bound(x[i], most))
            << "value " << i << " of " << x.size() << ": " << x[i] << " became " << y[i];
    }
  }
};

TEST_P(CodecLaw, TheSizeIsTheFormulaOfItsHeader) {
  for (std::size_t n : {0, 1, 3, 255, 256, 257, 1000, 100'000}) {
    const auto b = static_cast<std::size_t>(bits);
    EXPECT_EQ(codec->encoded_bytes(n), (n * b + 7) / 8 + (b < 16 ? 2 * ((n + 255) / 256) : 0)) << n << " values";
  }
}

TEST_P(CodecLaw, ZerosStayZero) { EXPECT_EQ(round_trip(Floats(300, 0.0F)), Floats(300, 0.0F)); }

TEST_P(CodecLaw, A_constant_vector_stays_constant) {
  const Floats y = round_trip(Floats(300, -0.3F));
  EXPECT_EQ(y, Floats(300, y[0]));
  EXPECT_NEAR(y[0], -0.3F, 0.3 * 0x1p-7);
}

TEST_P(CodecLaw, TailsOfEveryLengthAreWithinTheBound) {
  Rng rng(1, "tails");
  for (std::size_t n = 0; n <= 2 * block + 1; ++n) {
    Floats x(n);
    for (float& value : x) value = static_cast<float>(rng.normal());
    expect_within_bound(x);
  }
}

TEST_P(CodecLaw, DenormalsAndHugeValuesAreWithinTheBound) {
  for (float unit : {smallest, smallest * 100, 0x1p-140F, 0x1p-127F, std::numeric_limits<float>::min(), 1e30F, largest / 4})
    expect_within_bound({unit, -unit, 2 * unit, -3 * unit, 4 * unit, 0, unit / 3});
  expect_within_bound({largest, -largest, 0x1p127F, 1, smallest});
}

TEST_P(CodecLaw, RandomInputsAreWithinTheBound) {
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed, "codec");
    Floats x(rng.below(2 * block + 40));
    const double spread = 20 * rng.uniform();  // from even blocks to blocks with a few huge values
    const double unit = std::pow(10.0, 30 * rng.uniform() - 20);
    for (float& value : x) value = static_cast<float>(unit * rng.normal() * std::exp(spread * (rng.uniform() - 0.5)));
    expect_within_bound(x);
    if (HasFatalFailure()) return;
  }
}

/// all_below() agrees with the decoded values; for 2, 4 and 8 bits it may refuse from half the limit on.
TEST_P(CodecLaw, BytesAreBelowALimitWhenAllTheirValuesAre) {
  constexpr float limit = 0x1p60F;
  const auto below = [&](const Floats& x) {
    Bytes bytes;
    codec->encode(x, bytes);
    return codec->all_below(limit, bytes, x.size());
  };
  for (const std::size_t n : {1U, 15U, 16U, 17U, 255U, 256U, 257U, 600U, 1024U, 5000U}) {
    Rng rng(n, "below");
    Floats x(n);
    for (float& value : x) value = static_cast<float>(0x1p50 * rng.normal());
    EXPECT_TRUE(below(x)) << n << " values";
    for (const float bad : {nan, -nan, infinity, -infinity, 1e38F, -1e38F, 0x1.02p60F}) {
      const std::size_t at = rng.below(n);
      const float good = std::exchange(x[at], bad);
      EXPECT_FALSE(below(x)) << bad << " at " << at << " of " << n;
      x[at] = good;
    }
  }
  EXPECT_TRUE(codec->all_below(limit, {}, 0));
}

/// A malicious peer may send the code and the scales that no encoder produces.
TEST_P(CodecLaw, Bytes_below_a_limit_decode_below_it) {
  constexpr float limit = 0x1p60F;
  std::size_t taken = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Rng rng(seed, "bytes");
    const std::size_t n = 1 + rng.below(40);
    std::vector<float> memory(codec->encoded_bytes(n) / sizeof(float) + 1);  // aligned as a float
    const auto bytes = std::as_writable_bytes(std::span(memory)).first(codec->encoded_bytes(n));
    for (std::byte& b : bytes) b = static_cast<std::byte>(rng.below(256));
    if (!codec->all_below(limit, bytes, n)) continue;
    ++taken;
    Floats y(n);
    ASSERT_TRUE(codec->decode(bytes, y).ok());
    for (const float value : y) ASSERT_LT(std::abs(value), limit) << "seed " << seed;
  }
  EXPECT_GT(taken, 20U);
}

TEST_P(CodecLaw, Decoded_values_are_finite_exactly_when_the_input_is) {
  for (float poison : {nan, -nan, infinity, -infinity, std::bit_cast<float>(0x7f800001U)}) {
    Floats x(600, 1.0F);
    x[300] = poison;
    const Floats y = round_trip(x);
    EXPECT_FALSE(std::isfinite(y[300]));
    EXPECT_TRUE(all_finite(std::span(y).first(block))) << "the block before is not touched";
    EXPECT_TRUE(all_finite(std::span(y).subspan(2 * block))) << "the block after is not touched";
  }
  EXPECT_TRUE(all_finite(round_trip(Floats(600, largest))));
}

TEST_P(CodecLaw, Values_beside_a_NaN_stay_within_the_bound) {
  for (std::uint64_t seed = 0; seed < 4'000; ++seed) {
    Rng rng(seed, "poison");
    Floats x(1 + rng.below(2 * block + 40));
    const double unit = std::pow(10.0, 30 * rng.uniform() - 20);
    for (float& value : x) value = static_cast<float>(unit * rng.normal());
    for (std::uint64_t poisons = 1 + rng.below(3); poisons > 0; --poisons) {
      const auto anything = static_cast<std::uint32_t>(0x7f800000U | rng.below(1U << 23) | rng.below(2) << 31);
      const std::array<float, 4> kinds{nan, infinity, -infinity, std::bit_cast<float>(anything)};
      x[rng.below(x.size())] = kinds[rng.below(kinds.size())];
    }
    const Floats y = round_trip(x);
    for (std::size_t begin = 0; begin < x.size(); begin += block) {
      const std::span<const float> before = std::span(x).subspan(begin, std::min(block, x.size() - begin));
      const std::span<const float> after = std::span(y).subspan(begin, before.size());
      const bool clean = all_finite(before);
      ASSERT_EQ(all_finite(after), clean) << "seed " << seed;
      if (!clean && bits < 16) continue;  // the NaN spreads within its block
      float most = 0;
      for (const float value : before) most = std::max(most, std::isfinite(value) ? std::abs(value) : 0);
      for (std::size_t i = 0; i < before.size(); ++i) {
        ASSERT_EQ(std::isfinite(after[i]), std::isfinite(before[i])) << "seed " << seed;
        if (!std::isfinite(before[i])) continue;
        ASSERT_LE(std::abs(static_cast<double>(before[i]) - static_cast<double>(after[i])), bound(before[i], most)) << "seed " << seed;
      }
    }
  }
}

TEST_P(CodecLaw, EncodingAppends) {
  Bytes bytes(3, std::byte{7});
  const Floats x(5, 1.0F);
  codec->encode(x, bytes);
  ASSERT_EQ(bytes.size(), 3 + codec->encoded_bytes(5));
  EXPECT_EQ(bytes[2], std::byte{7});
  Floats y(5);
  EXPECT_TRUE(codec->decode(std::span(bytes).subspan(3), y).ok());
  EXPECT_EQ(y, x);
}

TEST_P(CodecLaw, Pieces_of_whole_blocks_encode_to_the_same_bytes) {
  Rng rng(3, "pieces");
  for (const std::size_t first : {block, 3 * block}) {
    Floats x(first + 70);
    for (float& value : x) value = static_cast<float>(rng.normal());
    Bytes whole, pieces;
    codec->encode(x, whole);
    codec->encode(std::span(x).first(first), pieces);
    codec->encode(std::span(x).subspan(first), pieces);
    EXPECT_EQ(pieces, whole);
  }
}

TEST_P(CodecLaw, Output_of_a_wrong_size_is_our_bug) {
  Bytes memory(codec->encoded_bytes(5) + 1);
  EXPECT_THROW(codec->encode_into(Floats(5), memory), Bug);
}

TEST_P(CodecLaw, Refuses_bytes_of_a_wrong_size) {
  Bytes bytes;
  codec->encode(Floats(300, 1.0F), bytes);
  Floats out(300, -7.0F);
  bytes.push_back({});
  const Outcome longer = codec->decode(bytes, out);
  ASSERT_FALSE(longer.ok());
  EXPECT_EQ(longer.error().next, Next::drop_peer);
  bytes.resize(bytes.size() - 2);
  EXPECT_FALSE(codec->decode(bytes, out).ok());
  EXPECT_EQ(out, Floats(300, -7.0F));
}

TEST_P(CodecLaw, Any_bytes_of_the_right_size_decode) {
  Rng rng(2, "bytes");
  Floats out(300);
  for (int round = 0; round < 1000; ++round) {
    Bytes bytes(codec->encoded_bytes(out.size()));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.below(256));
    EXPECT_TRUE(codec->decode(bytes, out).ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Bits, CodecLaw, testing::Values(32, 16, 8, 4, 2), testing::PrintToStringParamName());

TEST(Make, Refuses_other_numbers_of_bits) {
  for (int bits : {0, 1, 3, 64, -8}) {
    const auto none = make(bits);
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().next, Next::tell_user);
  }
}

TEST(AllFinite, SeesOneBadValueAnywhere) {
  EXPECT_TRUE(all_finite({}));
  for (std::size_t n = 1; n < 70; ++n) {
    Floats x(n, -largest);
    EXPECT_TRUE(all_finite(x));
    for (float poison : {nan, infinity, -infinity}) {
      for (std::size_t i = 0; i < n; ++i) {
        x[i] = poison;
        EXPECT_FALSE(all_finite(x)) << poison << " at " << i << " of " << n;
        x[i] = smallest;
      }
    }
  }
}

}  // namespace
}  // namespace motley::codec
