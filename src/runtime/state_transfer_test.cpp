// How the state of a server is received from its chief and sent back: which chunks are accepted, and when a state is complete.
#include "runtime/state_transfer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/linear_source_for_tests.h"
#include "runtime/silent_peer_owner_for_tests.h"
#include "runtime/state_receiver.h"
#include "runtime/state_sender.h"

namespace motley::runtime {
namespace {

constexpr ServerId here{1};

class StateTransfer : public testing::Test {
 protected:
  /// Receives every chunk of a state with these moments, as send_state() makes them.
  void receive(StateReceiver& receiver, const store::Moments* moments = nullptr) {
    send_state(layout, here, Version{3}, values, moments, [&](const wire::StateChunk& head, std::span<const std::byte> payload) {
      ASSERT_FALSE(receiver.objection(head));
      const std::span<std::byte> place = receiver.receive_buffer(*chief.connection, head, payload.size());
      ASSERT_EQ(place.size(), payload.size());
      std::copy(payload.begin(), payload.end(), place.begin());
      receiver.received(*chief.connection, head);
      ++chunks;
    });
  }
  [[nodiscard]] wire::StateChunk first_chunk() const { return {here, Version{3}, layout.of(here)[0], wire::StateKind::values}; }

  boost::asio::io_context io;
  FakePeer chief{io};
  store::Layout layout = linear_layout(2);
  std::vector<float> values = linear_start();
  std::uint64_t chunks = 0;
};

TEST_F(StateTransfer, Is_complete_with_all_chunks_and_the_end) {
  StateReceiver receiver(layout, here);
  EXPECT_FALSE(receiver.is_complete());
  receive(receiver);
  EXPECT_FALSE(receiver.is_complete()) << "the end has not been received";
  wire::StateEnd end{};
  end.version = Version{3};
  end.pieces = chunks;
  receiver.received(end);
  ASSERT_TRUE(receiver.is_complete());
  EXPECT_TRUE(receiver.objection(end)) << "there is one end";
  const auto state = receiver.take();
  ASSERT_TRUE(state.ok());
  EXPECT_EQ((*state)->version, Version{3});
  EXPECT_FALSE((*state)->moments);
  for (const SliceId id : layout.of(here))
    for (std::size_t i = layout[id].offset; i < layout[id].offset + layout[id].count; ++i) EXPECT_EQ((*state)->values[i], values[i]);
}

TEST_F(StateTransfer, Refuses_chunks_of_others_and_repeated_ones) {
  StateReceiver receiver(layout, here);
  wire::StateChunk chunk = first_chunk();
  chunk.server = ServerId{0};
  EXPECT_EQ(receiver.objection(chunk), "it sends a slice of server 0");
  receive(receiver);
  EXPECT_TRUE(receiver.objection(first_chunk()));
  chunk = first_chunk();
  chunk.slice = SliceId{99};
  EXPECT_TRUE(receiver.receive_buffer(*chief.connection, chunk, 12).empty());
  EXPECT_TRUE(receiver.receive_buffer(*chief.connection, first_chunk(), 1).empty());
}

TEST_F(StateTransfer, Reports_a_state_without_all_slices) {
  StateReceiver receiver(layout, here);
  wire::StateEnd end{};
  end.pieces = 0;
  receiver.received(end);
  ASSERT_TRUE(receiver.is_complete());
  EXPECT_FALSE(receiver.take().ok());
}

TEST_F(StateTransfer, Sends_one_state_after_another) {
  StateSender sender(layout, here, *chief.connection);
  const auto state = [&](std::uint64_t version) {
    auto made = std::make_shared<Exported>();
    made->version = Version{version};
    made->values = make_buffer(layout.values);
    return made;
  };
  sender.send(state(1));
  sender.send(state(2));
  const std::size_t each = layout.of(here).size();
  ASSERT_EQ(chief.fake->bulk_messages.size(), each);
  for (std::size_t i = 0; i < each; ++i) {
    EXPECT_EQ(chief.fake->bulk_messages.size(), each);
    chief.fake->callbacks->sent(*chief.fake, chief.fake->bulk_messages[i].ticket);
    sender.sent();
  }
  ASSERT_EQ(chief.fake->bulk_messages.size(), 2 * each);
  EXPECT_EQ(std::get<wire::StateChunk>(chief.fake->bulk_messages.back().head).version, Version{2});
}

}  // namespace
}  // namespace motley::runtime
