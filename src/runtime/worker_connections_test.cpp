// Which workers a server serves: claims of members, silent connections; and how far away it believes its chief to be.
#include "runtime/worker_connections.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/round_trip.h"
#include "runtime/silent_peer_owner_for_tests.h"

namespace motley::runtime {
namespace {

class WorkerConnectionsTest : public testing::Test, public SilentPeerOwner {
 protected:
  /// Adds a connection and sends a message through it, so that its PeerConnection is known.
  PeerConnection& add() {
    auto made = std::make_unique<FakeConnection>();
    fakes.push_back(made.get());
    workers.add(std::move(made));
    fakes.back()->callbacks->on_message(*fakes.back(), wire::Heartbeat{});
    return *last;
  }
  void on_message(PeerConnection& from, wire::Message) override { last = &from; }

  boost::asio::io_context io;
  std::vector<std::string> log;
  std::vector<FakeConnection*> fakes;
  PeerConnection* last = nullptr;
  std::vector<std::pair<WorkerId, PeerConnection*>> attached;
  Expulsions expulsions{io, [this](const std::string& line) { log.push_back(line); }};
  WorkerConnections workers{
      io, {}, *this, expulsions, [this](WorkerId worker, PeerConnection& connection) { attached.emplace_back(worker, &connection); }};
};

TEST_F(WorkerConnectionsTest, Members_are_attached_by_their_key) {
  PeerConnection& early = add();
  workers.claimed(early, {{3}, 77});
  EXPECT_TRUE(attached.empty());
  workers.admitted({{3}, 77});
  ASSERT_EQ(attached.size(), 1U);
  EXPECT_EQ(attached[0].second, &early);
  workers.repeat_attached();
  EXPECT_EQ(attached.size(), 2U);
  PeerConnection& thief = add();
  workers.claimed(thief, {{3}, 1});
  EXPECT_EQ(attached.size(), 2U);
  EXPECT_EQ(fakes[1]->closed_with, std::vector<std::string>{"it attaches as worker 3, which it is not"});
  EXPECT_EQ(log.size(), 1U);
}

TEST_F(WorkerConnectionsTest, Silent_connections_are_expelled_unless_members) {
  PeerConnection& member = add();
  add();
  const auto is_member = [&](const PeerConnection& worker) { return &worker == &member; };
  workers.expel_silent(std::chrono::hours(1), is_member);
  EXPECT_TRUE(log.empty());
  workers.expel_silent(Duration{-1}, is_member);
  EXPECT_TRUE(fakes[0]->closed_with.empty());
  EXPECT_EQ(fakes[1]->closed_with.size(), 1U);
}

TEST_F(WorkerConnectionsTest, A_removed_connection_is_not_attached_again) {
  PeerConnection& worker = add();
  workers.admitted({{3}, 77});
  workers.claimed(worker, {{3}, 77});
  workers.remove(worker);
  attached.clear();
  workers.repeat_attached();
  EXPECT_TRUE(attached.empty());
  io.poll();  // destroys it
}

TEST(RoundTrips, Are_measured_with_several_echoes_in_order) {
  boost::asio::io_context io;
  FakePeer chief(io);
  RoundTrip round_trip(*chief.connection);
  round_trip.start();
  EXPECT_FALSE(round_trip.answered({7}));
  for (std::uint32_t number = 0; number + 1 < RoundTrip::echoes; ++number) EXPECT_FALSE(round_trip.answered({number}));
  EXPECT_EQ(chief.fake->messages.size(), RoundTrip::echoes);
  const auto measured = round_trip.answered({RoundTrip::echoes - 1});
  ASSERT_TRUE(measured);
  EXPECT_GE(*measured, Duration{0});
  EXPECT_FALSE(round_trip.answered({RoundTrip::echoes - 1})) << "it answers once";
  EXPECT_FALSE(round_trip.answered({RoundTrip::echoes}));
}

}  // namespace
}  // namespace motley::runtime
