// Error feedback: the sum of all sent vectors plus the residual is the sum of all vectors that were to be sent.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/rng.h"
#include "codec/error_feedback.h"

namespace motley::codec {
namespace {

using Floats = std::vector<float>;
constexpr std::size_t n = 300;

Floats normals(Rng& rng) {
  Floats x(n);
  for (float& value : x) value = static_cast<float>(rng.normal());
  return x;
}

class Feedback : public testing::TestWithParam<int> {
 protected:
  std::unique_ptr<Codec> codec = std::move(make(GetParam())).value();
  Floats residual = Floats(n);

  Floats send(const Floats& x) {
    Bytes bytes;
    encode_with_feedback(*codec, x, residual, bytes);
    EXPECT_EQ(bytes.size(), codec->encoded_bytes(n));
    Floats q(n);
    EXPECT_TRUE(codec->decode(bytes, q).ok());
    return q;
  }
};

TEST_P(Feedback, Sent_vectors_plus_residual_add_up_to_the_inputs) {
  Rng rng(1, "feedback");
  std::vector<double> asked(n), sent(n);
  for (int round = 0; round < 200; ++round) {
    const Floats x = normals(rng), q = send(x);
    for (std::size_t i = 0; i < n; ++i) {
      asked[i] += x[i];
      sent[i] += q[i];
    }
  }
  for (std::size_t i = 0; i < n; ++i) EXPECT_NEAR(sent[i] + residual[i], asked[i], 1e-3);
}

TEST_P(Feedback, The_first_vector_is_encoded_as_without_feedback) {
  Rng rng(2, "first");
  const Floats x = normals(rng);
  Bytes bare, fed;
  std::move(make(GetParam())).value()->encode(x, bare);
  encode_with_feedback(*codec, x, residual, fed);
  EXPECT_EQ(bare, fed);
}

TEST_P(Feedback, A_vector_with_a_NaN_leaves_the_residual_unchanged) {
  Rng rng(4, "poison");
  send(normals(rng));
  const Floats before = residual;
  Floats x = normals(rng);
  x[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(std::isfinite(send(x)[7]));
  EXPECT_EQ(residual, before);
}

TEST_P(Feedback, Vectors_of_another_size_are_our_bug) {
  Bytes bytes;
  EXPECT_THROW(encode_with_feedback(*codec, Floats(n + 1), residual, bytes), Bug);
}

INSTANTIATE_TEST_SUITE_P(Bits, Feedback, testing::Values(32, 16, 8, 4, 2), testing::PrintToStringParamName());

TEST(ErrorFeedback, A_small_value_beside_a_large_one_arrives_eventually) {
  const auto codec = std::move(make(2)).value();
  const Floats x{1.0F, 0.1F};
  Floats residual(2);
  double arrived = 0;
  for (int round = 0; round < 100; ++round) {
    Bytes bytes;
    Floats q(2);
    encode_with_feedback(*codec, x, residual, bytes);
    ASSERT_TRUE(codec->decode(bytes, q).ok());
    arrived += q[1];
  }
  EXPECT_NEAR(arrived, 10.0, 1.1) << "without feedback nothing of it would ever arrive";
}

}  // namespace
}  // namespace motley::codec
