// Which encoding a device is asked for, and when its residual counts.
#include "runtime/gradient_encodings.h"

#include <gtest/gtest.h>

#include "runtime/linear_source_for_tests.h"

namespace motley::runtime {
namespace {

wire::Order order_of(std::uint8_t push_bits, double rate = 0.1) {
  wire::Order order;
  order.push_bits = push_bits;
  order.rate = rate;
  return order;
}

struct GradientEncodingsTest : testing::Test {
  store::Layout layout = linear_layout();
  GradientEncodings encodings{layout, {}};
};

TEST_F(GradientEncodingsTest, Fp32LeavesFloats) { EXPECT_FALSE(encodings.next(order_of(32), 8).has_value()); }

TEST_F(GradientEncodingsTest, FewBitsCoverEverySlice) {
  const auto request = encodings.next(order_of(8), 8);
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->bits, 8);
  ASSERT_EQ(request->encoding.slices.size(), layout.slices.size());
  for (std::size_t s = 0; s < layout.slices.size(); ++s) EXPECT_EQ(request->encoding.slices[s].bits, layout.slices[s].bits(8));
  EXPECT_TRUE(request->encoding.reset_residual) << "there is none yet";
}

TEST_F(GradientEncodingsTest, AResidualIsSentWithTheNextFp32Contribution) {
  encodings.encoded(*encodings.next(order_of(8), 8));
  const auto whole = encodings.next(order_of(32), 8);
  ASSERT_TRUE(whole.has_value());
  EXPECT_EQ(whole->bits, 32);
  EXPECT_FALSE(whole->encoding.reset_residual);
  encodings.sent_residual();
  EXPECT_FALSE(encodings.next(order_of(32), 8).has_value());
}

TEST_F(GradientEncodingsTest, TheResidualIsRescaledToTheNewUpdate) {
  encodings.encoded(*encodings.next(order_of(8, 0.1), 8));
  EXPECT_FLOAT_EQ(encodings.next(order_of(8, 0.2), 16)->encoding.rescale, 0.25F);
  encodings.reset();
  EXPECT_FLOAT_EQ(encodings.next(order_of(8, 0.1), 8)->encoding.rescale, 1);
}

TEST_F(GradientEncodingsTest, DeltasAreNotRescaled) {
  GradientEncodings deltas(layout, {.local_steps = true});
  deltas.encoded(*deltas.next(order_of(8, 0.1), 8));
  EXPECT_FLOAT_EQ(deltas.next(order_of(8, 0.2), 16)->encoding.rescale, 1);
}

TEST_F(GradientEncodingsTest, Bf16GradientsAreSentAsTheyAre) {
  GradientEncodings bf16(layout, {.bf16_transfer = true});
  const auto request = bf16.next(order_of(32), 8);
  ASSERT_TRUE(request.has_value());
  EXPECT_TRUE(request->encoding.bf16_as_is);
  EXPECT_EQ(request->bits, 16);
  bf16.encoded(*request);
  EXPECT_TRUE(bf16.next(order_of(8), 8)->encoding.reset_residual) << "nothing was rounded";
}

}  // namespace
}  // namespace motley::runtime
