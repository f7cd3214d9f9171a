// Error feedback: rounding errors are added to the next contribution, in units of the update; non-finite values leave no residual.
#include "store/push_stream.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/rng.h"
#include "codec/magnitude.h"

namespace motley::store {
namespace {

using Floats = std::vector<float>;

// A large tensor, one that needs 8 bits, and one that is sent as fp32.
const std::vector<TensorPlace> tensors{
    {0, 1500, TensorKind::parameter, 2}, {1500, 300, TensorKind::parameter, 8}, {1800, 20, TensorKind::parameter, 32}};
constexpr std::size_t values = 1820;

Floats normals(Rng& rng) {
  Floats out(values);
  for (float& x : out) x = static_cast<float>(rng.normal());
  return out;
}

struct Stream {
  Layout layout = cut(tensors, 600, 2);
  PushStream stream{layout};

  /// Sends and decodes every slice.
  Floats send(const Floats& flat, std::uint8_t bits) {
    Floats arrived(values);
    for (std::uint32_t id = 0; id < layout.slices.size(); ++id) {
      const Slice& slice = layout[SliceId{id}];
      codec::Bytes bytes(3);  // existing bytes stay
      stream.encode({id}, bits, flat, bytes);
      const auto codec = codec::make(slice.bits(bits)).value();
      EXPECT_EQ(bytes.size(), 3 + codec->encoded_bytes(slice.count));
      EXPECT_TRUE(codec->decode(std::span(bytes).subspan(3), std::span(arrived).subspan(slice.offset, slice.count)).ok());
    }
    return arrived;
  }
  [[nodiscard]] Floats residual() const { return {stream.residual().begin(), stream.residual().end()}; }
};

double norm(std::span<const float> x) {
  double sum = 0;
  for (const float value : x) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

TEST(PushStream, SumOfSentEqualsSumOfGivenUpToTheResidual) {
  for (const std::uint8_t bits : {2, 4, 8, 16}) {
    Rng rng(bits, "push stream");
    Stream worker;
    std::vector<double> given(values), sent(values);
    for (int i = 0; i < 300; ++i) {
      const Floats flat = normals(rng);
      worker.stream.begin(32, 0.1);
      const Floats arrived = worker.send(flat, bits);
      for (std::size_t k = 0; k < values; ++k) {
        given[k] += flat[k];
        sent[k] += arrived[k];
      }
    }
    const Floats residual = worker.residual();
    for (std::size_t k = 0; k < values; ++k) {
      ASSERT_NEAR(given[k], sent[k] + residual[k], 1e-3) << "value " << k << " with " << int{bits} << " bits";
      ASSERT_LT(std::abs(residual[k]), 10) << "the residual does not grow";
    }
  }
}

TEST(PushStream, WithoutTheResidualTheSumIsWrong) {
  Stream feeding;
  const Floats small = [] {
    Floats flat(values, 0.1F);
    flat[0] = flat[600] = flat[1200] = 1;  // with 2 bits the others round to 0
    return flat;
  }();
  double fed = 0;
  double forgetful = 0;
  for (int i = 0; i < 100; ++i) {
    Stream fresh;
    forgetful += fresh.send(small, 2)[10];
    fed += feeding.send(small, 2)[10];
  }
  EXPECT_EQ(forgetful, 0);
  EXPECT_NEAR(fed, 10, 1.1);
}

TEST(PushStream, TheResidualIsRescaledWhenSamplesOrRateChange) {
  Rng rng(1, "push stream");
  Stream worker;
  worker.stream.begin(32, 0.1);
  worker.send(normals(rng), 4);
  const Floats first = worker.residual();
  struct Case {
    std::uint64_t samples;
    double rate;
    float factor;  // relative to the first
  };
  for (const auto& [samples, rate, factor] : {Case{16, 0.1, 2}, Case{16, 0.05, 4}, Case{32, 0.1, 1}, Case{32, 0.4, 0.25F},
                                              Case{64, 0, 0.25F}, Case{32, 0.4, 0.25F}, Case{32, 0.1, 1}}) {
    worker.stream.begin(samples, rate);
    const Floats now = worker.residual();
    for (std::size_t k = 0; k < values; ++k)
      ASSERT_NEAR(now[k], factor * first[k], 1e-5) << samples << " samples at rate " << rate << ", value " << k;
  }
}

TEST(PushStream, Fp32SlicesLeaveNoResidual) {
  Rng rng(2, "push stream");
  Stream worker;
  const Floats flat = normals(rng);
  worker.stream.begin(32, 0.1);
  const Floats arrived = worker.send(flat, 2);
  const Floats residual = worker.residual();
  EXPECT_EQ(Floats(arrived.begin() + 1800, arrived.end()), Floats(flat.begin() + 1800, flat.end()));
  EXPECT_EQ(Floats(residual.begin() + 1800, residual.end()), Floats(20));
  EXPECT_LT(norm(std::span(residual).subspan(1500, 300)), 0.02 * norm(std::span(flat).subspan(1500, 300))) << "at least 8 bits";
  EXPECT_GT(norm(std::span(residual).first(1500)), 0.3 * norm(std::span(flat).first(1500))) << "2 bits";
}

TEST(PushStream, NonFiniteValuesArriveAndLeaveNoResidual) {
  for (const float poison : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Rng rng(3, "push stream");
    Stream worker;
    worker.stream.begin(32, 0.1);
    worker.send(normals(rng), 4);
    const Floats before = worker.residual();
    Floats bad = normals(rng);
    for (const Slice& slice : worker.layout.slices) bad[slice.offset + slice.count / 2] = poison;
    worker.stream.begin(32, 0.1);
    const Floats arrived = worker.send(bad, 4);
    for (const Slice& slice : worker.layout.slices)
      EXPECT_FALSE(codec::all_finite(std::span(arrived).subspan(slice.offset, slice.count))) << "the receiver can detect and refuse it";
    EXPECT_EQ(worker.residual(), before);
    EXPECT_EQ(worker.stream.residual_ratio(), 0) << "no finite value was encoded";
    worker.stream.begin(32, 0.1);
    EXPECT_TRUE(codec::all_finite(worker.send(normals(rng), 4)));
  }
}

TEST(PushStream, TheResidualRatioIsOfTheLastContribution) {
  Rng rng(4, "push stream");
  Stream worker;
  EXPECT_EQ(worker.stream.residual_ratio(), 0);
  const Floats flat = normals(rng);
  worker.stream.begin(32, 0.1);
  worker.send(flat, 2);
  EXPECT_NEAR(worker.stream.residual_ratio(), norm(worker.residual()) / norm(flat), 1e-6);
  EXPECT_GT(worker.stream.residual_ratio(), 0.3);
  worker.stream.begin(32, 0.1);
  EXPECT_EQ(worker.stream.residual_ratio(), 0) << "a new contribution has begun";
  Floats wanted = normals(rng);
  const Floats kept = worker.residual();
  const Floats more = wanted;
  for (std::size_t k = 0; k < values; ++k) wanted[k] += kept[k];
  worker.send(more, 8);
  EXPECT_NEAR(worker.stream.residual_ratio(), norm(worker.residual()) / norm(wanted), 1e-6);
  EXPECT_LT(worker.stream.residual_ratio(), 0.02);
}

TEST(PushStream, AnFp32SliceIncludesTheResidual) {
  Rng rng(5, "push stream");
  Stream worker;
  EXPECT_FALSE(worker.stream.has_residual(SliceId{0})) << "nothing was encoded yet";
  worker.stream.begin(32, 0.1);
  worker.send(normals(rng), 4);
  EXPECT_TRUE(worker.stream.has_residual(SliceId{0}));
  const Floats kept = worker.residual();
  const Floats flat = normals(rng);
  worker.stream.begin(32, 0.1);
  const Floats arrived = worker.send(flat, 32);
  for (std::size_t k = 0; k < values; ++k) ASSERT_EQ(arrived[k], flat[k] + kept[k]) << "value " << k;
  for (std::uint32_t id = 0; id < worker.layout.slices.size(); ++id) EXPECT_FALSE(worker.stream.has_residual({id}));
  EXPECT_EQ(worker.residual(), Floats(values));
}

TEST(PushStream, RejectsAContributionOfTheWrongSize) {
  Stream worker;
  codec::Bytes bytes;
  EXPECT_THROW(worker.stream.encode(SliceId{0}, 4, Floats(values - 1), bytes), Bug);
}

}  // namespace
}  // namespace motley::store
