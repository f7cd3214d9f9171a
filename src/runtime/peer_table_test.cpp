// The table of accepted connections.
#include "runtime/peer_table.h"

#include <gtest/gtest.h>

#include "runtime/fake_connection_for_tests.h"
#include "transport/recording_callbacks_for_tests.h"

namespace motley::runtime {
namespace {

class PeerTables : public testing::Test, public PeerOwner {
 protected:
  AcceptedPeer& accept(Instant now = {}) {
    auto fake = std::make_unique<FakeConnection>();
    fakes.push_back(fake.get());
    return table.add(std::make_unique<PeerConnection>(std::move(fake), io, transport::Options{}, *this), now);
  }
  wire::Objection objection(const PeerConnection&, wire::Lane, const wire::Message&) const override { return {}; }
  void expel(PeerConnection&, const std::string&) override {}
  void on_message(PeerConnection&, wire::Message) override {}
  std::span<std::byte> receive_buffer(PeerConnection&, const wire::Message&, std::size_t) override { return {}; }
  void received(PeerConnection&, const wire::Message&) override {}
  void closed(PeerConnection& peer, const Error&) override { table.remove(table.at(peer)); }

  boost::asio::io_context io;
  PeerTable<AcceptedPeer> table{io};
  std::vector<FakeConnection*> fakes;
};

TEST_F(PeerTables, Connections_are_started_and_numbered) {
  const AcceptedPeer &first = accept(), &second = accept();
  EXPECT_NE(fakes[0]->callbacks, nullptr);
  EXPECT_EQ(second.id, first.id + 1);
  EXPECT_EQ(table.find(first.id), &first);
  EXPECT_EQ(table.find(*second.connection), &second);
}

TEST_F(PeerTables, Closed_connections_outlive_their_last_callback) {
  AcceptedPeer& peer = accept();
  const PeerConnection& connection = *peer.connection;
  const std::uint32_t id = peer.id;
  fakes[0]->callbacks->closed(*fakes[0], world_failed("gone"));
  EXPECT_EQ(table.find(id), nullptr);
  EXPECT_EQ(table.find(connection), nullptr);
  EXPECT_FALSE(connection.is_closing()) << "it can be used until the event loop runs";
  transport::run_ready(io);
  EXPECT_GT(accept().id, id) << "numbers are not given twice";
}

TEST_F(PeerTables, Pauses_of_this_process_are_no_silence) {
  const AcceptedPeer& peer = accept(Instant{from_seconds(1)});
  table.excuse(from_seconds(3));
  EXPECT_EQ(peer.last_contact, Instant{from_seconds(4)});
}

}  // namespace
}  // namespace motley::runtime
