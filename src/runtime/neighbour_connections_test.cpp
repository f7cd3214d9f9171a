// Which connections of a stage survive a new assignment, and how long one may be no neighbour.
#include "runtime/neighbour_connections.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/silent_peer_owner_for_tests.h"

namespace motley::runtime {
namespace {

class NeighbourConnectionsTest : public testing::Test, public SilentPeerOwner {
 protected:
  using Opened = NeighbourConnections::Opened;
  PeerConnection& add(Opened opened, std::optional<std::uint32_t> generation = {}) {
    auto made = std::make_unique<FakeConnection>();
    fakes.push_back(made.get());
    PeerConnection& peer = neighbours.add(std::move(made), opened);
    if (generation) neighbours.identify(peer, wire::PeerHello{*generation, 0, 0});
    return peer;
  }
  void on_message(PeerConnection&, wire::Message) override { ++messages; }

  boost::asio::io_context io;
  std::vector<std::string> log;
  std::vector<FakeConnection*> fakes;
  int messages = 0;
  Expulsions expulsions{io, [this](const std::string& line) { log.push_back(line); }};
  NeighbourConnections neighbours{io, {}, *this, expulsions};
};

TEST_F(NeighbourConnectionsTest, Only_early_neighbours_survive_an_assignment) {
  const PeerConnection& connected = add(Opened::connected, 5);
  const PeerConnection& earlier = add(Opened::accepted, 4);
  const PeerConnection& early = add(Opened::accepted, 5);
  const PeerConnection& unidentified = add(Opened::accepted);
  neighbours.drop_before(5);
  EXPECT_EQ(neighbours.find(connected), nullptr);
  EXPECT_EQ(neighbours.find(earlier), nullptr);
  EXPECT_NE(neighbours.find(early), nullptr);
  EXPECT_NE(neighbours.find(unidentified), nullptr);
  neighbours.drop_all();
  EXPECT_EQ(neighbours.all().size(), 1U) << "it may be a neighbour of another chief's assignment";
}

TEST_F(NeighbourConnectionsTest, A_dropped_connection_delivers_nothing) {
  add(Opened::connected);
  fakes[0]->callbacks->on_message(*fakes[0], wire::PeerHello{});
  EXPECT_EQ(messages, 1);
  neighbours.drop_all();
  fakes[0]->callbacks->on_message(*fakes[0], wire::PeerHello{});
  EXPECT_EQ(messages, 1);
  io.poll();  // destroys it
}

TEST_F(NeighbourConnectionsTest, Idle_accepted_connections_are_expelled_once) {
  PeerConnection& before = add(Opened::accepted, 5);
  add(Opened::connected);
  add(Opened::accepted);
  neighbours.expel_idle(std::chrono::hours(1), &before);
  EXPECT_TRUE(log.empty());
  for (int times = 0; times < 2; ++times) neighbours.expel_idle(Duration{-1}, &before);
  EXPECT_EQ(log.size(), 1U);
  EXPECT_EQ(fakes[2]->closed_with.size(), 1U);
}

}  // namespace
}  // namespace motley::runtime
