// How activations are sent in slices, and which slices of a neighbour are accepted; and how a stage receives its part of the model.
#include "runtime/activation_exchange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "runtime/silent_peer_owner_for_tests.h"
#include "runtime/stage_part_receiver.h"

namespace motley::runtime {
namespace {

using Progress = ActivationExchange::Progress;

class ActivationExchanges : public testing::Test {
 protected:
  static ActivationExchangeOptions options(Neighbour neighbour) {
    return {.neighbour = neighbour, .generation = 2, .first_micro = 8, .most_waiting = 1, .slices = 2, .slice_bytes = 1024};
  }
  ActivationExchange connected(Neighbour neighbour) {
    ActivationExchange made(options(neighbour));
    made.connect(*peer.connection);
    return made;
  }
  static Activation activation(std::vector<float> values) {
    const auto count = static_cast<std::int64_t>(values.size());
    return {std::move(values), {count}};
  }
  wire::Objection objection(const ActivationExchange& exchange, const wire::ActivationSlice& slice) const {
    return exchange.objection(*peer.connection, slice);
  }
  std::optional<Progress> receive(ActivationExchange& exchange, const wire::ActivationSlice& slice, const std::vector<float>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    const auto place = exchange.receive_buffer(slice, bytes.size());
    if (place.size() != bytes.size()) return std::nullopt;
    std::copy(bytes.begin(), bytes.end(), place.begin());
    return exchange.received(*peer.connection, slice);
  }

  boost::asio::io_context io;
  FakePeer peer{io};
};

TEST_F(ActivationExchanges, Send_an_output_in_slices) {
  ActivationExchange after = connected(Neighbour::after);
  after.put(8, activation({1, 2, 3}));
  after.send(8);
  const auto& sent = peer.fake->bulk_messages;
  ASSERT_EQ(sent.size(), 2U);
  const auto& head = std::get<wire::ActivationSlice>(sent[1].head);
  EXPECT_EQ(head.generation, 2U);
  EXPECT_EQ(head.micro, 8U);
  EXPECT_EQ(head.offset, 2U);
  EXPECT_FALSE(head.back);
  EXPECT_EQ(sent[0].payload.size() + sent[1].payload.size(), 12U);
}

TEST_F(ActivationExchanges, Drop_what_a_lost_neighbour_cannot_receive) {
  ActivationExchange before = connected(Neighbour::before);
  before.put(8, activation({1}));
  before.disconnect();
  before.send(8);
  EXPECT_TRUE(peer.fake->bulk_messages.empty());
}

TEST_F(ActivationExchanges, Receive_slices_of_micro_batches_in_order) {
  ActivationExchange before = connected(Neighbour::before);
  const wire::ActivationSlice first{2, 8, false, 0, {3}}, rest{2, 8, false, 2, {3}}, next{2, 9, false, 0, {1}};
  EXPECT_FALSE(objection(before, first));
  EXPECT_TRUE(objection(before, rest)) << "its beginning is missing";
  EXPECT_TRUE(objection(before, next)) << "8 comes first";
  EXPECT_EQ(receive(before, first, {1, 2})->complete, false);
  EXPECT_TRUE(objection(before, first)) << "again";
  EXPECT_TRUE(objection(before, {2, 8, false, 2, {4}})) << "of another shape";
  EXPECT_TRUE(before.complete().empty());
  EXPECT_EQ(receive(before, rest, {3})->complete, true);
  EXPECT_EQ(before.complete(), std::vector<std::uint64_t>{8});
  EXPECT_FALSE(objection(before, next));
  EXPECT_EQ(before.take(8).values, (std::vector<float>{1, 2, 3}));
  EXPECT_TRUE(before.take(8).values.empty());
}

TEST_F(ActivationExchanges, Refuse_more_micro_batches_than_may_wait) {
  ActivationExchange before = connected(Neighbour::before);
  for (const std::uint64_t micro : {8, 9}) EXPECT_TRUE(receive(before, {2, micro, false, 0, {1}}, {1}));
  EXPECT_TRUE(objection(before, {2, 10, false, 0, {1}}));
  EXPECT_FALSE(before.take(8).values.empty());
  EXPECT_FALSE(objection(before, {2, 10, false, 0, {1}}));
}

TEST_F(ActivationExchanges, Refuse_gradients_of_outputs_that_were_not_sent) {
  ActivationExchange after = connected(Neighbour::after);
  EXPECT_TRUE(objection(after, {2, 8, true, 0, {3}}));
  after.put(8, activation({1, 2, 3}));
  after.send(8);
  EXPECT_TRUE(objection(after, {2, 8, true, 0, {4}})) << "of another size";
  EXPECT_FALSE(objection(after, {2, 8, true, 0, {3}}));
}

TEST_F(ActivationExchanges, Refuse_other_peers_and_other_assignments) {
  ActivationExchange before = connected(Neighbour::before);
  FakePeer other(io);
  EXPECT_TRUE(before.objection(*other.connection, {2, 8, false, 0, {1}}));
  EXPECT_TRUE(objection(before, {3, 8, false, 0, {1}}));
  EXPECT_FALSE(objection(before, {1, 99, false, 5, {1}})) << "of an earlier one: discarded";
  EXPECT_FALSE(receive(before, {1, 99, false, 5, {1}}, {1}));
  EXPECT_TRUE(before.complete().empty());
}

TEST_F(ActivationExchanges, Refuse_more_values_than_the_shape_has) {
  ActivationExchange before = connected(Neighbour::before);
  const std::vector<std::byte> bytes(8);
  EXPECT_TRUE(before.receive_buffer({2, 8, false, 0, {1}}, 8).empty());
  EXPECT_TRUE(before.receive_buffer({2, 8, false, 0, {1}}, 3).empty());
}

TEST_F(ActivationExchanges, Report_values_that_are_not_finite) {
  ActivationExchange before = connected(Neighbour::before);
  EXPECT_FALSE(receive(before, {2, 8, false, 0, {2}}, {1, std::numeric_limits<float>::infinity()})->finite);
}

TEST_F(ActivationExchanges, Keep_memory_that_is_being_written) {
  std::span<std::byte> place;
  {
    ActivationExchange before = connected(Neighbour::before);
    place = before.receive_buffer({2, 8, false, 0, {1}}, 4);
  }
  ASSERT_EQ(place.size(), 4U);
  std::fill(place.begin(), place.end(), std::byte{1});
  EXPECT_NE(peer.connection->take_received().memory, nullptr);
}

class StagePartReceivers : public testing::Test {
 protected:
  static wire::StageSlice slice(wire::StateKind kind, std::uint64_t offset) { return {2, 1, 0, kind, offset}; }
  bool receive(StagePartReceiver& receiver, const wire::StageSlice& head, const std::vector<float>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    const auto buffer = receiver.receive_buffer(*chief.connection, head, bytes.size());
    if (buffer.size() != bytes.size()) return false;
    std::copy(bytes.begin(), bytes.end(), buffer.begin());
    receiver.received(*chief.connection, head);
    return true;
  }
  boost::asio::io_context io;
  FakePeer chief{io};
  const store::StagePlace place{{{0, 0, 4}}, 4, 3};
};

TEST_F(StagePartReceivers, Collect_values_and_moments_in_order) {
  using wire::StateKind;
  StagePartReceiver receiver(place, 3, 17);
  EXPECT_TRUE(receiver.is_next(slice(StateKind::values, 0)));
  EXPECT_FALSE(receiver.is_next(slice(StateKind::values, 2)));
  EXPECT_TRUE(receive(receiver, slice(StateKind::values, 0), {1, 2}));
  EXPECT_TRUE(receiver.is_next(slice(StateKind::values, 2)));
  EXPECT_TRUE(receive(receiver, slice(StateKind::values, 2), {3, 4}));
  EXPECT_TRUE(receive(receiver, slice(StateKind::first, 0), {5, 6, 7}));
  EXPECT_FALSE(receiver.is_complete());
  EXPECT_TRUE(receive(receiver, slice(StateKind::second, 0), {8, 9, 10}));
  ASSERT_TRUE(receiver.is_complete());
  EXPECT_EQ(receiver.part()->values, (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(receiver.part()->second, (std::vector<float>{8, 9, 10}));
  EXPECT_EQ(receiver.part()->updates, 17U);
}

TEST_F(StagePartReceivers, Refuse_what_does_not_fit) {
  StagePartReceiver receiver(place, 1, 0);
  EXPECT_FALSE(receive(receiver, slice(wire::StateKind::values, 0), std::vector<float>(5)));
  EXPECT_FALSE(receive(receiver, slice(wire::StateKind::values, 9), {1}));
  EXPECT_FALSE(receive(receiver, slice(wire::StateKind::first, 0), {1})) << "moments were not announced";
}

}  // namespace
}  // namespace motley::runtime
