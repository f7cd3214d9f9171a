// Slices of contributions as a worker sends them: their bytes, their bits, and how long their memory is kept.
#include "runtime/gradient_push.h"

#include <gtest/gtest.h>

#include <utility>

#include "base/bits.h"
#include "runtime/linear_source_for_tests.h"
#include "runtime/silent_peer_owner_for_tests.h"

namespace motley::runtime {
namespace {

class GradientPushes : public testing::Test {
 protected:
  std::shared_ptr<Computation> computation(std::uint64_t step, float value) const {
    auto made = std::make_shared<Computation>();
    made->order.step = Step{step};
    made->order.rate = 0.1;
    made->samples = 4;
    made->out = make_buffer(layout.values);
    std::fill(made->out->floats().begin(), made->out->floats().end(), value);
    made->out->floats()[1] = value / 3;  // not exact with few bits
    return made;
  }
  static wire::Push push(std::uint64_t step, std::uint8_t bits) { return {WorkerId{1}, Step{step}, SliceId{0}, bits}; }
  [[nodiscard]] const transport::BulkMessage& last() const { return peer.fake->bulk_messages.back(); }
  [[nodiscard]] std::uint8_t last_bits() const { return std::get<wire::Push>(last().head).bits; }

  boost::asio::io_context io;
  FakePeer peer{io};
  store::Layout layout = linear_layout();
  GradientPush gradients{layout, false};
};

TEST_F(GradientPushes, Send_fp32_from_the_contribution_itself) {
  auto made = computation(1, 0.5F);
  const std::weak_ptr<Buffer> watch = made->out;
  const std::byte* first = std::as_const(*made->out).bytes(0, 1).data();
  gradients.send(*peer.connection, push(1, fp32_bits), *made);
  EXPECT_EQ(last().payload.data(), first);
  EXPECT_EQ(last().payload.size(), 12U);
  EXPECT_TRUE(last().may_borrow);
  EXPECT_EQ(gradients.residual_ratio(), 0);
  made.reset();
  EXPECT_FALSE(watch.expired()) << "the transport still reads it";
  peer.fake->callbacks->sent(*peer.fake, last().ticket);
  EXPECT_TRUE(watch.expired());
}

TEST_F(GradientPushes, Encode_with_the_ordered_bits_and_keep_the_residual) {
  gradients.send(*peer.connection, push(1, 2), *computation(1, 0.5F));
  EXPECT_EQ(last().payload.size(), codec::encoded_bytes(2, 3));
  EXPECT_GT(gradients.residual_ratio(), 0);
  gradients.send(*peer.connection, push(2, fp32_bits), *computation(2, 0.5F));
  ASSERT_EQ(last().payload.size(), 12U);
  const auto* sent = reinterpret_cast<const float*>(last().payload.data());
  EXPECT_NE(sent[1], 0.5F / 3) << "the residual of the last step is added";
}

TEST_F(GradientPushes, Send_what_the_device_has_encoded_with_its_bits) {
  const auto made = computation(1, 0.5F);
  made->coded = bf16_bits;
  gradients.send(*peer.connection, push(1, fp32_bits), *made);
  EXPECT_EQ(last_bits(), bf16_bits);
  EXPECT_EQ(last().payload.size(), 6U);
  EXPECT_EQ(last().payload.data(), std::as_const(*made->out).bytes(0, 1).data());
}

}  // namespace
}  // namespace motley::runtime
