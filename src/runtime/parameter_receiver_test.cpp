// Which slices of parameters a worker accepts, where they are received, how changes are decoded, and which steps are kept.
#include "runtime/parameter_receiver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/bits.h"
#include "codec/codec.h"
#include "runtime/linear_source_for_tests.h"
#include "runtime/silent_peer_owner_for_tests.h"

namespace motley::runtime {
namespace {

constexpr WorkerId me{7};

class ParameterReceivers : public testing::Test {
 protected:
  static wire::Pulled pulled(std::uint64_t step, std::uint32_t slice, std::uint8_t bits = fp32_bits, bool rounded = false) {
    return {me, Step{step}, Version{step}, SliceId{slice}, bits, rounded};
  }
  /// Receives the slice with these values. Null: discarded or refused.
  std::shared_ptr<IncomingParameters> receive(ParameterReceiver& receiver, const wire::Pulled& head, const std::vector<float>& values) {
    codec::Bytes bytes;
    codec::make(head.bits).value()->encode(values, bytes);
    const std::span<std::byte> place = receiver.receive_buffer(*peer.connection, head, bytes.size());
    if (place.empty()) return nullptr;
    std::copy(bytes.begin(), bytes.end(), place.begin());
    error.clear();
    const auto incoming = receiver.received(*peer.connection, head);
    if (!incoming) error = incoming.error().message;
    return incoming ? *incoming : nullptr;
  }
  static std::vector<float> values_of(IncomingParameters& incoming, std::uint32_t slice) {
    const store::Slice& place = layout()[SliceId{slice}];
    const auto values = incoming.buffer().floats().subspan(place.offset, place.count);
    return {values.begin(), values.end()};
  }
  static const store::Layout& layout() {
    static const store::Layout made = linear_layout();
    return made;
  }
  ParameterReceiver member(ParameterReceiverOptions options = {}) const {
    ParameterReceiver made(layout(), options);
    made.receive_for(me);
    return made;
  }

  boost::asio::io_context io;
  FakePeer peer{io};
  std::string error;
};

TEST_F(ParameterReceivers, Collect_the_slices_of_a_step) {
  ParameterReceiver receiver = member();
  EXPECT_EQ(receiver.find(me, Step{3}), nullptr);
  const auto incoming = receive(receiver, pulled(3, 1), {1, 2, 3});
  ASSERT_NE(incoming, nullptr);
  EXPECT_EQ(receiver.find(me, Step{3}), incoming);
  EXPECT_TRUE(incoming->has(SliceId{1}));
  EXPECT_FALSE(incoming->has(SliceId{0}));
  EXPECT_EQ(values_of(*incoming, 1), (std::vector<float>{1, 2, 3}));
}

TEST_F(ParameterReceivers, Discard_slices_for_an_earlier_membership) {
  ParameterReceiver receiver(layout(), {});
  EXPECT_FALSE(receiver.objection(ServerId{0}, pulled(3, 1)));
  EXPECT_EQ(receive(receiver, pulled(3, 1), {1, 2, 3}), nullptr);
  EXPECT_EQ(error, "");
  receiver.receive_for(WorkerId{8});
  EXPECT_EQ(receive(receiver, pulled(3, 1), {1, 2, 3}), nullptr);
  EXPECT_EQ(receiver.find(me, Step{3}), nullptr);
}

TEST_F(ParameterReceivers, Discard_a_slice_when_the_membership_ends_meanwhile) {
  ParameterReceiver receiver = member();
  ASSERT_FALSE(receiver.receive_buffer(*peer.connection, pulled(3, 1), 12).empty());
  receiver.receive_for(WorkerId{8});
  const auto incoming = receiver.received(*peer.connection, pulled(3, 1));
  ASSERT_TRUE(incoming.ok());
  EXPECT_EQ(*incoming, nullptr);
}

TEST_F(ParameterReceivers, Refuse_slices_that_no_correct_server_sends) {
  ParameterReceiver receiver = member();
  EXPECT_EQ(receiver.objection(ServerId{0}, pulled(0, 99)), "there is no slice 99");
  EXPECT_EQ(receiver.objection(ServerId{1}, pulled(0, 2)), "slice 2 is server 0's, which it is not");
  EXPECT_EQ(receiver.objection(ServerId{0}, pulled(0, 0, 5)), "there is no codec of 5 bits");
  ASSERT_NE(receive(receiver, pulled(0, 0), {1, 2, 3}), nullptr);
  EXPECT_EQ(receiver.objection(ServerId{0}, pulled(0, 0)), "slice 0 of step 0 comes twice");
  for (std::uint64_t step = 1; step < 32; ++step) {
    EXPECT_FALSE(receiver.objection(ServerId{0}, pulled(step, 0)));
    ASSERT_NE(receive(receiver, pulled(step, 0), {1, 2, 3}), nullptr);
  }
  EXPECT_EQ(receiver.objection(ServerId{0}, pulled(32, 0)), "parameters of more than 32 steps come");
}

TEST_F(ParameterReceivers, Refuse_payloads_of_another_size_or_encoding) {
  ParameterReceiver receiver = member();
  EXPECT_TRUE(receiver.receive_buffer(*peer.connection, pulled(0, 0), 8).empty());
  EXPECT_TRUE(receiver.receive_buffer(*peer.connection, pulled(0, 0), 16).empty());
  EXPECT_TRUE(receiver.receive_buffer(*peer.connection, pulled(0, 0, bf16_bits, true), 6).empty()) << "its device computes with fp32";
  ParameterReceiver bf16 = member({.keeps_values = true, .bf16_transfer = true});
  EXPECT_FALSE(bf16.receive_buffer(*peer.connection, pulled(0, 0, bf16_bits, true), 6).empty());
}

TEST_F(ParameterReceivers, Add_changes_to_the_values_of_the_step_before) {
  ParameterReceiver receiver = member();
  receive(receiver, pulled(4, 0), {1, 2, 3});
  const auto incoming = receive(receiver, pulled(5, 0, 8), {0.5F, 0, 0});
  ASSERT_NE(incoming, nullptr) << error;
  EXPECT_NEAR(values_of(*incoming, 0)[0], 1.5F, 0.01F);
  EXPECT_NEAR(values_of(*incoming, 0)[2], 3, 0.01F);
}

TEST_F(ParameterReceivers, Report_changes_of_values_that_were_never_received) {
  ParameterReceiver decoding = member();
  EXPECT_EQ(receive(decoding, pulled(5, 0, 8), {0.5F, 0, 0}), nullptr);
  EXPECT_EQ(error, "a slice of 8 bits cannot be used: there is nothing that it could be a change of");
  ParameterReceiver keeping = member({.keeps_values = true});
  receive(keeping, pulled(4, 1), {1, 2, 3});
  EXPECT_EQ(receive(keeping, pulled(5, 0, 8), {0.5F, 0, 0}), nullptr);
  EXPECT_EQ(error, "a slice of 8 bits cannot be used: there is nothing that it could be a change of");
  EXPECT_NE(receive(keeping, pulled(5, 1, 8), {0.5F, 0, 0}), nullptr) << error;
}

TEST_F(ParameterReceivers, Keep_the_step_before_until_this_one_is_complete) {
  ParameterReceiver receiver = member();
  for (const std::uint64_t step : {1, 2, 3}) receive(receiver, pulled(step, 0), {1, 2, 3});
  receiver.drop_before(me, Step{3});
  EXPECT_EQ(receiver.find(me, Step{1}), nullptr);
  EXPECT_NE(receiver.find(me, Step{2}), nullptr);
  receive(receiver, pulled(3, 1), {1, 2, 3});
  receive(receiver, pulled(3, 2), {1, 2, 3, 4});
  receive(receiver, pulled(3, 3), {1, 2, 3});
  receiver.drop_before(me, Step{3});
  EXPECT_EQ(receiver.find(me, Step{2}), nullptr);
  EXPECT_NE(receiver.find(me, Step{3}), nullptr);
  receiver.drop_before(me, Step{9});  // unknown: nothing is dropped
  EXPECT_NE(receiver.find(me, Step{3}), nullptr);
}

TEST_F(ParameterReceivers, Read_a_model_in_place_as_a_whole) {
  ParameterReceiver receiver = member();
  const std::vector<float> model(linear_values, 0.5F);
  const auto bytes = std::as_bytes(std::span(model));
  const auto borrow = std::make_shared<int>(0);
  const auto incoming = receiver.accept_in_place(pulled(0, 1), bytes.subspan(12, 12), borrow);
  ASSERT_NE(incoming, nullptr);
  EXPECT_TRUE(incoming->has(SliceId{1}));
  EXPECT_EQ(std::as_const(incoming->buffer()).floats().data(), model.data());
  EXPECT_EQ(receiver.accept_in_place(pulled(0, 0), bytes.subspan(4, 12), borrow), nullptr) << "it lies elsewhere";
  EXPECT_TRUE(receiver.receive_buffer(*peer.connection, pulled(0, 0), 12).empty()) << "the rest is not copied";
  EXPECT_EQ(receiver.accept_in_place(pulled(0, 0), bytes.first(12), borrow), incoming);
  ParameterReceiver many(linear_layout(2), {});
  many.receive_for(me);
  EXPECT_EQ(many.accept_in_place(pulled(0, 1), bytes.subspan(12, 12), borrow), nullptr) << "several servers, several memories";
}

TEST_F(ParameterReceivers, Keep_memory_that_is_being_written_when_its_step_is_dropped) {
  ParameterReceiver receiver = member();
  const std::span<std::byte> place = receiver.receive_buffer(*peer.connection, pulled(1, 0), 12);
  const std::weak_ptr<IncomingParameters> watch = receiver.find(me, Step{1});
  for (std::uint32_t slice = 0; slice < 4; ++slice) receiver.accept_in_place(pulled(2, slice), {}, nullptr);  // refused: nothing of step 2
  FakePeer other(io);
  receiver.receive_buffer(*other.connection, pulled(3, 0), 12);
  receiver.receive_buffer(*other.connection, pulled(4, 0), 12);
  receiver.drop_before(me, Step{4});
  EXPECT_EQ(receiver.find(me, Step{1}), nullptr);
  EXPECT_FALSE(watch.expired());
  std::memset(place.data(), 0, place.size());
  peer.connection.reset();
  EXPECT_TRUE(watch.expired());
}

}  // namespace
}  // namespace motley::runtime
