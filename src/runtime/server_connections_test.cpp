// How a worker connects to the servers of a job. Over unix sockets.
#include "runtime/server_connections.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/silent_peer_owner_for_tests.h"
#include "transport/pairs_for_tests.h"

namespace motley::runtime {
namespace {

class ServerConnectionsTest : public testing::Test, public SilentPeerOwner, public transport::AcceptCallbacks {
 protected:
  void accepted(std::unique_ptr<transport::Connection> connection) override {
    connection->start(received_by_server);
    accepted_connections.push_back(std::move(connection));
  }
  void refused(const std::string&, const std::string&) override {}
  void on_message(PeerConnection& from, wire::Message) override { sender = servers.id_of(from); }
  void connect(const std::vector<std::string>& addresses) {
    servers.connect(
        addresses, [this] { ++connected; }, [this](const std::string& why) { failures.push_back(why); });
  }

  boost::asio::io_context io;
  transport::Address address = transport::fresh_socket();
  transport::RecordingCallbacks received_by_server;
  std::vector<std::unique_ptr<transport::Connection>> accepted_connections;
  std::unique_ptr<transport::Acceptor> acceptor = transport::listen(io, address, {}, *this).value();
  int connected = 0;
  std::vector<std::string> failures;
  std::optional<ServerId> sender;
  FakePeer chief{io};
  ServerConnections servers{io, {.node = "node-1", .transport = {}}, *chief.connection, *this};
};

TEST_F(ServerConnectionsTest, One_server_is_reached_through_the_chief) {
  connect({""});
  EXPECT_EQ(connected, 1);
  EXPECT_EQ(servers.size(), 1U);
  EXPECT_EQ(&servers.at(ServerId{0}), chief.connection.get());
  servers.send_beside_chief(wire::Heartbeat{});
  EXPECT_TRUE(chief.fake->messages.empty());
}

TEST_F(ServerConnectionsTest, Every_other_server_is_introduced_to_the_node) {
  connect({"", to_text(address), to_text(address)});
  ASSERT_TRUE(transport::run_until(io, [this] { return connected == 1 && received_by_server.messages.size() == 2; }));
  EXPECT_EQ(std::get<wire::JoinRequest>(received_by_server.messages[0]).node, "node-1");
  EXPECT_EQ(servers.id_of(servers.at(ServerId{2})), ServerId{2});
  FakePeer other(io);
  EXPECT_FALSE(servers.id_of(*other.connection));
  accepted_connections[0]->send(wire::Stop{});
  ASSERT_TRUE(transport::run_until(io, [this] { return sender.has_value(); }));
  EXPECT_GT(sender->value, 0U);
}

TEST_F(ServerConnectionsTest, A_malformed_address_fails_at_once) {
  connect({"", "nonsense", "nonsense"});
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].find("server 1: "), 0U) << failures[0];
}

TEST_F(ServerConnectionsTest, Nothing_is_reported_after_retirement) {
  connect({"", to_text(address)});
  servers.retire();
  ASSERT_TRUE(transport::run_until(io, [this] { return !accepted_connections.empty(); }));
  transport::run_ready(io);
  EXPECT_EQ(connected, 0);
  EXPECT_TRUE(failures.empty());
}

}  // namespace
}  // namespace motley::runtime
