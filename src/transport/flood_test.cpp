// Floods of connections: they are bounded, never evict an authenticated peer, and an authenticated client still connects.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <deque>

#include "transport/raw_client_for_tests.h"

namespace motley::transport {
namespace {

using namespace std::chrono_literals;

constexpr Options few_handshakes() {
  Options options;
  options.handshake_time = std::chrono::hours(1);  // no handshake ends because of its deadline
  options.handshakes = 32;
  return options;
}

class Flood : public testing::Test {
 protected:
  void listen_here() {
    auto listening = listen(io, TcpAddress{"127.0.0.1", 0}, options, incoming);
    ASSERT_TRUE(listening.ok()) << listening.error().message;
    acceptor = std::move(listening).value();
  }
  /// Each connection stays open until 200 later ones have been made.
  void connect_unauthenticated(int number) {
    constexpr std::size_t at_a_time = 200;
    for (int i = 0; i < number; ++i) {
      Stream& client = clients.emplace_back(raw_stream(io, acceptor->address()));
      const ::linger at_once{.l_onoff = 1, .l_linger = 0};  // leaves no port in TIME_WAIT
      ::setsockopt(client.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
      boost::system::error_code ignored;
      if (i % 2 == 0) asio::write(client, asio::buffer("MTL", 3), ignored);  // the first bytes of the magic
      if (clients.size() > at_a_time) clients.pop_front();
    }
  }
  [[nodiscard]] bool refused_for(std::string_view because) const {
    return std::any_of(incoming.refusals.begin(), incoming.refusals.end(),
                       [&](const std::string& why) { return why.find(because) != std::string::npos; });
  }

  asio::io_context io{1};
  Options options = [] {
    Options made = few_handshakes();
    made.token = "right token";
    return made;
  }();
  RecordingAcceptor incoming;
  std::unique_ptr<Acceptor> acceptor;
  std::deque<Stream> clients;
};

TEST_F(Flood, Of_unauthenticated_clients_still_admits_a_client_with_token) {
  listen_here();
  auto member = connect_now(io, acceptor->address(), options);
  ASSERT_TRUE(member.ok());
  ASSERT_TRUE(run_until(io, [&] { return incoming.connections.size() == 1; }));
  RecordingCallbacks left, right;
  (*member)->start(left);
  incoming.connections[0]->start(right);

  std::unique_ptr<Connection> joining;
  std::uint32_t waves = 0, attempts = 0;
  bool trying = false;
  for (; waves < 100; ++waves) {
    connect_unauthenticated(10);
    if (!trying && !joining) {
      trying = true;
      ++attempts;
      connect(io, acceptor->address(), options, [&](auto connected) {
        trying = false;
        if (connected.ok()) joining = std::move(*connected);
      });
    }
    connect_unauthenticated(10);
    (*member)->send(wire::Heartbeat{.worker = {waves}});
    run_ready(io);
  }
  ASSERT_TRUE(run_until(io, [&] { return right.messages.size() == waves && !trying; }));
  EXPECT_TRUE(joining) << "not admitted in " << attempts << " attempts";
  EXPECT_FALSE(left.ended() || right.ended());
}

TEST_F(Flood, Never_evicts_an_authenticated_client) {
  listen_here();
  const Session session{};
  Stream control = raw_stream(io, acceptor->address());
  ASSERT_TRUE(authenticate_now(io, control, Lane::control, session, options).ok());
  connect_unauthenticated(300);
  run_ready(io);
  Stream bulk = raw_stream(io, acceptor->address());
  const Outcome introduced = authenticate_now(io, bulk, Lane::bulk, session, options);
  EXPECT_TRUE(introduced.ok()) << introduced.error().message;
}

TEST_F(Flood, Of_authenticated_clients_is_bounded_too) {
  listen_here();
  std::vector<Stream> control_lanes;
  for (std::uint8_t i = 0; i < 40; ++i) {
    Session session{};
    session[0] = std::byte{i};
    control_lanes.push_back(raw_stream(io, acceptor->address()));
    ASSERT_TRUE(authenticate_now(io, control_lanes.back(), Lane::control, session, options).ok());
  }
  ASSERT_TRUE(run_until(io, [&] { return incoming.refusals.size() == 8; }));
  EXPECT_NE(incoming.refusals[0].find("32 connections waited for their other lane"), std::string::npos) << incoming.refusals[0];
  EXPECT_TRUE(connect_now(io, acceptor->address(), options).ok());
}

TEST_F(Flood, Of_other_protocols_is_refused_at_the_first_wrong_byte) {
  listen_here();
  Stream http = raw_stream(io, acceptor->address()), ssh = raw_stream(io, acceptor->address());
  boost::system::error_code ignored;
  asio::write(http, asio::buffer(std::string("GET / HTTP/1.1\r\n\r\n")), ignored);
  ASSERT_TRUE(run_until(io, [&] { return incoming.refusals.size() == 1; }));
  EXPECT_NE(incoming.refusals[0].find("\"GET / HTTP/1.1\""), std::string::npos) << incoming.refusals[0];
  asio::write(ssh, asio::buffer(std::string("\x1b[2J")), ignored);
  ASSERT_TRUE(run_until(io, [&] { return incoming.refusals.size() == 2; }));
  EXPECT_NE(incoming.refusals[1].find("\"?[2J\""), std::string::npos) << incoming.refusals[1];
}

TEST_F(Flood, Of_one_byte_at_a_time_ends_at_the_deadline) {
  options.handshake_time = 50ms;
  listen_here();
  Stream slow = raw_stream(io, acceptor->address());
  const wire::Bytes opening = read_raw(io, slow, challenge_bytes);
  boost::system::error_code gone;
  for (std::size_t i = 0; i < 6; ++i) {
    asio::write(slow, asio::buffer(&opening[i], 1), gone);
    run_ready(io);
  }
  ASSERT_TRUE(run_until(io, [&] { return !incoming.refusals.empty(); }));
  EXPECT_NE(incoming.refusals[0].find("took longer than 50 ms"), std::string::npos) << incoming.refusals[0];
}

TEST_F(Flood, That_takes_the_last_descriptor_does_not_stop_the_listener) {
  listen_here();
  connect_unauthenticated(20);  // in the listener's backlog: nothing has run yet
  Stream good = raw_stream(io, acceptor->address());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int lowest_free = ::dup(good.native_handle());
  ::close(lowest_free);
  rlimit tight = before;
  tight.rlim_cur = static_cast<rlim_t>(lowest_free) + 5;  // enough for five of them
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  EXPECT_TRUE(run_until(io, [&] { return incoming.refusals.size() >= 16; }));
  EXPECT_TRUE(refused_for("no file descriptor left"));
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(authenticate_now(io, good, Lane::control, Session{}, options).ok());
  EXPECT_TRUE(connect_now(io, acceptor->address(), options).ok());
}

TEST_F(Flood, Is_reported_when_no_handshake_can_be_evicted) {
  listen_here();
  Stream waiting = raw_stream(io, acceptor->address());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(waiting.native_handle());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_TRUE(run_until(io, [&] { return !incoming.refusals.empty(); }));
  EXPECT_TRUE(refused_for("accepting the connection failed"));
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(authenticate_now(io, waiting, Lane::control, Session{}, options).ok());
}

}  // namespace
}  // namespace motley::transport
