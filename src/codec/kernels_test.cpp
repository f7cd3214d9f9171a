// Every target that this machine can run gives the bits of the reference for every input, and writes nothing else.
#include "codec/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <ostream>
#include <string>

#include "base/check.h"
#include "base/rng.h"
#include "codec/codec.h"
#include "codec/error_feedback.h"
#include "codec/format.h"

namespace motley::codec {

void PrintTo(Target target, std::ostream* out) { *out << name_of(target); }  // the name in gtest's output

namespace {

using Floats = std::vector<float>;

constexpr std::array<std::size_t, 24> sizes{0,  1,  2,  3,   7,   8,   15,  16,  17,  31,  32,   33,
                                            63, 64, 65, 127, 255, 256, 257, 511, 512, 513, 1000, 4097};
constexpr std::array<int, 4> widths{2, 4, 8, 16};

const EncodeDecode& coding_of(const Kernels& kernels, int bits) {
  switch (bits) {
    case 2: return kernels.bits2;
    case 4: return kernels.bits4;
    case 8: return kernels.bits8;
    default: return kernels.bf16;
  }
}

std::size_t encoded_bytes(int bits, std::size_t values) { return make(bits).value()->encoded_bytes(values); }

/// n elements between guards, one element past the beginning of the allocation: not aligned.
template <class T>
class Guarded {
 public:
  explicit Guarded(std::size_t n) : memory_((n + 2) * sizeof(T), guard) {}
  T* data() { return reinterpret_cast<T*>(memory_.data()) + 1; }
  /// All bits, guards included.
  [[nodiscard]] const Bytes& bits() const { return memory_; }
  [[nodiscard]] bool guards_stand() const {
    const auto untouched = [](std::byte byte) { return byte == guard; };
    return std::all_of(memory_.begin(), memory_.begin() + sizeof(T), untouched) &&
           std::all_of(memory_.end() - sizeof(T), memory_.end(), untouched);
  }

 private:
  static constexpr std::byte guard{0xa5};
  Bytes memory_;
};

float any_float(Rng& rng) { return std::bit_cast<float>(static_cast<std::uint32_t>(rng.below(1ULL << 32))); }

/// Kinds of input, each with a property that a wrong loop fails on.
float value_of(int kind, double unit, Rng& rng) {
  constexpr float largest = std::numeric_limits<float>::max();
  switch (kind) {
    case 0: return static_cast<float>(rng.normal());
    case 1: return static_cast<float>(unit * rng.normal());                                                     // denormal to huge
    case 2: return static_cast<float>(unit * rng.normal() * std::exp(20 * (rng.uniform() - 0.5)));              // a few huge values
    case 3: return std::bit_cast<float>(static_cast<std::uint32_t>(rng.below(1U << 23) | rng.below(2) << 31));  // denormals
    case 4: return rng.below(2) == 0 ? 0.0F : -0.0F;
    case 5: return rng.below(2) == 0 ? largest : -largest * static_cast<float>(rng.uniform());
    case 6: return static_cast<float>(static_cast<int>(rng.below(509)) - 254) / 2;  // beside a 127: ties of 8 bits
    case 7: return static_cast<float>(static_cast<int>(rng.below(29)) - 14) / 2;    // beside a 7: ties of 4 bits
    case 8: return static_cast<float>(static_cast<int>(rng.below(5)) - 2) / 2;      // beside a 1: ties of 2 bits
    default: return any_float(rng);                                                 // NaNs and infinities too
  }
}
constexpr int kinds = 10;

Floats input(int kind, std::size_t n, Rng& rng) {
  const double unit = std::pow(10.0, 80 * rng.uniform() - 44);
  Floats x(n);
  for (float& value : x) value = value_of(kind, unit, rng);
  return x;
}

Floats finite_input(std::size_t n, Rng& rng) { return input(static_cast<int>(rng.below(kinds - 1)), n, rng); }

class TargetLaw : public testing::TestWithParam<Target> {
 protected:
  const Kernels& kernels = kernels_of(GetParam());

  void expect_same_bytes(int bits, const Floats& x) {
    Guarded<std::byte> ours(encoded_bytes(bits, x.size())), expected(encoded_bytes(bits, x.size()));
    coding_of(kernels, bits).encode(x.data(), x.size(), ours.data());
    coding_of(reference_kernels, bits).encode(x.data(), x.size(), expected.data());
    ASSERT_EQ(ours.bits(), expected.bits()) << bits << " bits, " << x.size() << " values";
    ASSERT_TRUE(ours.guards_stand());
  }

  void expect_same_values(int bits, const std::byte* bytes, std::size_t n) {
    Guarded<float> ours(n), expected(n);
    coding_of(kernels, bits).decode(bytes, n, ours.data());
    coding_of(reference_kernels, bits).decode(bytes, n, expected.data());
    ASSERT_EQ(ours.bits(), expected.bits()) << bits << " bits, " << n << " values";
    ASSERT_TRUE(ours.guards_stand());
  }
};

TEST_P(TargetLaw, EncodesToTheBytesOfTheReference) {
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    for (const std::size_t n : sizes)
      for (int kind = 0; kind < kinds; ++kind) {
        SCOPED_TRACE(testing::Message() << "seed " << seed << ", kind " << kind);
        Rng rng(seed, "encode");
        const Floats x = input(kind, n, rng);
        for (const int bits : widths) ASSERT_NO_FATAL_FAILURE(expect_same_bytes(bits, x));
      }
}

TEST_P(TargetLaw, Finds_a_NaN_at_every_place) {
  for (const float poison : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                             std::numeric_limits<float>::quiet_NaN(), std::bit_cast<float>(0xff800001U)})
    for (std::size_t i = 0; i < 2 * block_values; ++i) {
      Floats x(2 * block_values + 5, 0.75F);
      x[i] = poison;
      for (const int bits : widths) ASSERT_NO_FATAL_FAILURE(expect_same_bytes(bits, x));
    }
}

TEST_P(TargetLaw, Rounds_ties_and_their_neighbours_alike) {
  for (const int bits : {2, 4, 8}) {
    const int levels = (1 << (bits - 1)) - 1;
    for (const float scale : {1.0F, 1.5F, 0x1.fep-3F, 0x1.02p20F, 0x1p-126F, 0x1p-130F, 0x1.fep127F}) {
      Floats x{scale};
      for (int half = -2 * levels; half <= 2 * levels; ++half) {
        const auto tie = static_cast<float>(static_cast<double>(scale) * half / (2 * levels));
        for (const float value : {std::nextafter(tie, -scale), tie, std::nextafter(tie, scale)}) x.push_back(value);
      }
      while (x.size() % block_values != 0) x.push_back(scale);
      for (std::size_t i = 0; i < x.size(); i += block_values) x[i] = scale;  // the scale of each block
      ASSERT_NO_FATAL_FAILURE(expect_same_bytes(bits, x));
    }
  }
}

TEST_P(TargetLaw, Rounds_to_bfloat16_alike) {
  Floats x;
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper)
    for (const std::uint32_t lower : {0U, 1U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) x.push_back(std::bit_cast<float>(upper << 16 | lower));
  expect_same_bytes(16, x);
}

/// Every byte as codes with every scale, infinities and NaNs included; over the scales every byte takes every place.
TEST_P(TargetLaw, Decodes_every_byte_with_every_scale) {
  for (const int bits : {2, 4, 8}) {
    const std::size_t block_bytes = encoded_bytes(bits, block_values), blocks = 256 / (block_bytes - scale_bytes);
    Bytes bytes(blocks * block_bytes);
    for (unsigned scale = 0; scale < 0x10000; ++scale) {
      unsigned byte = scale;
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        const std::size_t place = i % block_bytes;
        if (place < scale_bytes)
          bytes[i] = static_cast<std::byte>(scale >> (8 * place));
        else
          bytes[i] = static_cast<std::byte>(byte++);
      }
      ASSERT_NO_FATAL_FAILURE(expect_same_values(bits, bytes.data(), blocks * block_values)) << "scale " << scale;
    }
  }
}

TEST_P(TargetLaw, DecodesEveryBfloat16) {
  Bytes bytes;
  for (unsigned half = 0; half < 0x10000; ++half) {
    bytes.push_back(static_cast<std::byte>(half));
    bytes.push_back(static_cast<std::byte>(half >> 8));
  }
  expect_same_values(16, bytes.data(), 0x10000);
}

TEST_P(TargetLaw, DecodesAnyBytesOfAnySizeAlike) {
  for (std::uint64_t seed = 0; seed < 50; ++seed)
    for (const std::size_t n : sizes)
      for (const int bits : widths) {
        Rng rng(seed, "decode");
        Guarded<std::byte> bytes(encoded_bytes(bits, n));
        std::generate_n(bytes.data(), encoded_bytes(bits, n), [&] { return static_cast<std::byte>(rng.below(256)); });
        ASSERT_NO_FATAL_FAILURE(expect_same_values(bits, bytes.data(), n)) << "seed " << seed;
      }
}

TEST_P(TargetLaw, Finds_the_largest_magnitude_at_every_place) {
  EXPECT_EQ(kernels.largest_magnitude_bits(nullptr, 0), 0);
  Rng rng(1, "largest");
  for (const std::size_t n : sizes)
    for (std::size_t i = 0; i < n; ++i) {
      Floats x(n, 0.5F);
      x[i] = any_float(rng);
      ASSERT_EQ(kernels.largest_magnitude_bits(x.data(), n), reference_kernels.largest_magnitude_bits(x.data(), n)) << i << " of " << n;
    }
}

TEST_P(TargetLaw, Finds_the_largest_bfloat16_at_every_place) {
  EXPECT_EQ(kernels.largest_bf16_bits(nullptr, 0), 0);
  Rng rng(1, "largest half");
  for (const std::size_t n : sizes)
    for (std::size_t i = 0; i < n; ++i) {
      std::vector<std::uint16_t> x(n, 0x3f00);
      x[i] = static_cast<std::uint16_t>(rng.below(1U << 16));
      const auto* bytes = reinterpret_cast<const std::byte*>(x.data());
      const std::int32_t expected = std::max<std::int32_t>(x[i] & 0x7fff, n > 1 ? 0x3f00 : 0) << 16;
      ASSERT_EQ(kernels.largest_bf16_bits(bytes, n), expected) << i << " of " << n;
    }
}

TEST_P(TargetLaw, AddsAlike) {
  Rng rng(1, "add");
  for (int round = 0; round < 20; ++round)
    for (const std::size_t n : sizes) {
      const Floats a = input(kinds - 1, n, rng), b = finite_input(n, rng);  // of two NaNs the compiler chooses the sum's
      Guarded<float> ours(n), expected(n);
      kernels.add(a.data(), b.data(), n, ours.data());
      reference_kernels.add(a.data(), b.data(), n, expected.data());
      ASSERT_EQ(ours.bits(), expected.bits()) << n << " values, round " << round;
      ASSERT_TRUE(ours.guards_stand());
    }
}

TEST_P(TargetLaw, Residuals_and_sums_of_squares_are_equal) {
  Rng rng(1, "keep");
  for (int round = 0; round < 20; ++round)
    for (const std::size_t n : sizes) {
      const Floats wanted = input(1, n, rng), sent = input(1, n, rng);
      SquareSums ours;
      for (double& sum : ours.wanted) sum = rng.uniform();  // sums continue from their present values
      for (double& sum : ours.residual) sum = rng.uniform();
      SquareSums expected = ours;
      Guarded<float> kept(n), kept_by_reference(n);
      kernels.keep_residual(wanted.data(), sent.data(), n, kept.data(), ours);
      reference_kernels.keep_residual(wanted.data(), sent.data(), n, kept_by_reference.data(), expected);
      ASSERT_EQ(kept.bits(), kept_by_reference.bits()) << n << " values, round " << round;
      ASSERT_TRUE(kept.guards_stand());
      ASSERT_TRUE(std::equal(std::begin(ours.wanted), std::end(ours.wanted), expected.wanted)) << n << " values, round " << round;
      ASSERT_TRUE(std::equal(std::begin(ours.residual), std::end(ours.residual), expected.residual)) << n << " values, round " << round;
    }
}

TEST_P(TargetLaw, Error_feedback_gives_the_same_bits) {
  for (const int bits : {2, 4, 8, 16, 32}) {
    const auto codec = std::move(make(bits, GetParam())).value();
    const auto twin = std::move(make(bits, Target::plain)).value();
    Rng rng(1, "feedback");
    for (const std::size_t n : sizes) {
      Floats residual(n), residual_of_twin(n);
      for (int round = 0; round < 5; ++round) {
        const Floats x = input(0, n, rng);
        Bytes bytes, bytes_of_twin;
        const FeedbackNorms kept = encode_with_feedback(*codec, x, residual, bytes, kernels);
        const FeedbackNorms expected = encode_with_feedback(*twin, x, residual_of_twin, bytes_of_twin, reference_kernels);
        ASSERT_EQ(bytes, bytes_of_twin);
        ASSERT_EQ(residual, residual_of_twin);
        ASSERT_EQ(kept.squared_wanted, expected.squared_wanted);
        ASSERT_EQ(kept.squared_residual, expected.squared_residual);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OfThisMachine, TargetLaw, testing::ValuesIn(targets()),
                         [](const auto& instance) { return std::string(name_of(instance.param)); });

TEST(Targets, BeginWithTheReferenceAndEndWithTheBest) {
  EXPECT_EQ(targets().front(), Target::plain);
  EXPECT_EQ(targets().back(), best_target());
  EXPECT_EQ(&kernels_of(best_target()), &best_kernels());
}

TEST(Targets, A_target_that_the_machine_lacks_is_our_bug) {
  const std::vector<Target> here = targets();
  for (const Target target : {Target::avx2, Target::avx512}) {
    if (std::find(here.begin(), here.end(), target) != here.end()) continue;
    EXPECT_THROW(static_cast<void>(kernels_of(target)), Bug);
  }
}

}  // namespace
}  // namespace motley::codec
