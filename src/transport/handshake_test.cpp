// Handshakes: a client with a wrong token, version or job, or one that is too slow, is refused; all others connect undisturbed.
#include "transport/handshake.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <fstream>

#include "transport/raw_client_for_tests.h"

namespace motley::transport {
namespace {

using namespace std::chrono_literals;

class Handshake : public testing::Test {
 protected:
  asio::io_context io{1};
  Options options{.token = "right token"};
  RecordingAcceptor incoming;
  std::unique_ptr<Acceptor> acceptor;

  void listen_here() {
    auto listening = listen(io, TcpAddress{"127.0.0.1", 0}, options, incoming);
    ASSERT_TRUE(listening.ok()) << listening.error().message;
    acceptor = std::move(listening).value();
  }
  Stream client() { return raw_stream(io, acceptor->address()); }

  void expect_connect_fails(const Options& with, std::string_view because) {
    const auto connection = connect_now(io, acceptor->address(), with);
    ASSERT_FALSE(connection.ok());
    EXPECT_NE(connection.error().message.find(because), std::string::npos) << connection.error().message;
  }
  void expect_refused(std::string_view because, std::size_t nth = 1) {
    ASSERT_TRUE(run_until(io, [&] { return incoming.refusals.size() >= nth; }));
    EXPECT_NE(incoming.refusals[nth - 1].find(because), std::string::npos) << incoming.refusals[nth - 1];
  }
  void expect_a_good_peer_comes_in() {
    const std::size_t before = incoming.connections.size();
    const auto connection = connect_now(io, acceptor->address(), options);
    ASSERT_TRUE(connection.ok()) << connection.error().message;
    ASSERT_TRUE(run_until(io, [&] { return incoming.connections.size() == before + 1; }));
  }
};

TEST_F(Handshake, Admits_a_client_with_the_token) {
  listen_here();
  expect_a_good_peer_comes_in();
  expect_a_good_peer_comes_in();
  EXPECT_TRUE(incoming.refusals.empty());
}

TEST_F(Handshake, Refuses_a_wrong_token) {
  listen_here();
  expect_connect_fails({.token = "other token"}, "wrong token");
  expect_refused("wrong token");
  expect_connect_fails({}, "wrong token");
  expect_a_good_peer_comes_in();
}

TEST_F(Handshake, Refuses_another_job) {
  options.job[0] = std::byte{7};
  listen_here();
  Options other = options;
  other.job[31] = std::byte{1};
  expect_connect_fails(other, "another job");
  expect_refused("another job");
  expect_a_good_peer_comes_in();
}

TEST_F(Handshake, Admits_any_job_only_with_the_token) {
  options.job[0] = std::byte{7};
  listen_here();
  Options joining = options;
  joining.job = any_job;
  EXPECT_TRUE(connect_now(io, acceptor->address(), joining).ok());
  ASSERT_TRUE(run_until(io, [&] { return incoming.connections.size() == 1; }));
  joining.token = "other token";
  expect_connect_fails(joining, "wrong token");
}

TEST_F(Handshake, Listener_without_a_job_refuses_a_client_with_one) {
  ASSERT_EQ(options.job, any_job);
  listen_here();
  Options other = options;
  other.job[0] = std::byte{7};
  expect_connect_fails(other, "another job");
  EXPECT_TRUE(incoming.connections.empty());
}

TEST_F(Handshake, Refuses_another_version_and_another_protocol) {
  listen_here();
  const auto answer_with = [&](std::size_t place, std::byte changed) {
    Stream stream = client();
    wire::Bytes answer = read_raw(io, stream, challenge_bytes);  // with the right magic and version
    answer.resize(answer_bytes);
    answer[place] = changed;
    write_raw(stream, answer);
    return read_raw(io, stream, verdict_bytes)[0];
  };
  EXPECT_EQ(answer_with(4, std::byte{99}), static_cast<std::byte>(Verdict::other_version));
  expect_refused("another version", 1);
  EXPECT_EQ(answer_with(0, std::byte{99}), static_cast<std::byte>(Verdict::not_motley));
  expect_refused("does not speak Motley", 2);
  EXPECT_EQ(answer_with(6, std::byte{2}), static_cast<std::byte>(Verdict::wrong_lane));
  expect_refused("control then bulk", 3);
}

TEST_F(Handshake, Refuses_noise_and_early_disconnects) {
  listen_here();
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Stream stream = client();
    wire::Bytes begun;  // a valid beginning, never completed
    wire::Appender{begun}.put(handshake_magic, 4);
    wire::Appender{begun}.put(handshake_version, 2);
    begun.resize(seed);
    write_raw(stream, seed % 2 == 0 ? noise(answer_bytes, seed) : begun);
    if (seed % 2 == 1) close_quietly(stream);
    expect_refused(seed % 2 == 0 ? "does not speak Motley" : "broke off", seed + 1);
  }
  expect_a_good_peer_comes_in();
}

TEST_F(Handshake, Refuses_a_client_that_takes_too_long) {
  options.handshake_time = 20ms;
  listen_here();
  Stream silent = client();
  expect_refused("took longer than 20 ms");
}

TEST_F(Handshake, Refuses_a_control_lane_without_a_bulk_lane) {
  options.handshake_time = 20ms;
  listen_here();
  Stream half = client();
  EXPECT_TRUE(authenticate_now(io, half, Lane::control, Session{}, options).ok());
  expect_refused("took longer than 20 ms");
  EXPECT_TRUE(incoming.connections.empty());
}

TEST_F(Handshake, Refuses_lanes_out_of_order) {
  listen_here();
  Stream bulk = client(), control = client(), again = client();
  EXPECT_FALSE(authenticate_now(io, bulk, Lane::bulk, Session{}, options).ok());
  expect_refused("without its control lane");
  EXPECT_TRUE(authenticate_now(io, control, Lane::control, Session{}, options).ok());
  EXPECT_FALSE(authenticate_now(io, again, Lane::control, Session{}, options).ok());
  expect_refused("a second control lane", 2);
}

TEST_F(Handshake, Refuses_a_replayed_proof) {
  listen_here();
  Exchange exchange;
  Stream first = client(), second = client();
  const wire::Bytes challenge = read_raw(io, first, challenge_bytes);
  std::copy(challenge.begin() + 6, challenge.end(), exchange.server_nonce.begin());
  wire::Bytes answer(challenge.begin(), challenge.begin() + 6);
  answer.resize(answer_bytes - sizeof(Proof));
  const Proof proof = prove(options.token, Role::client, exchange);
  answer.insert(answer.end(), proof.begin(), proof.end());
  write_raw(first, answer);
  EXPECT_EQ(read_raw(io, first, verdict_bytes)[0], static_cast<std::byte>(Verdict::welcome));
  write_raw(second, answer);
  EXPECT_EQ(read_raw(io, second, verdict_bytes + challenge_bytes)[challenge_bytes], static_cast<std::byte>(Verdict::wrong_token));
}

TEST_F(Handshake, Client_refuses_a_server_without_the_token) {
  asio::ip::tcp::acceptor impostor(io, {asio::ip::make_address("127.0.0.1"), 0});
  wire::Bytes challenge;
  wire::Appender{challenge}.put(handshake_magic, 4);
  wire::Appender{challenge}.put(handshake_version, 2);
  challenge.resize(challenge_bytes);
  std::optional<Stream> caller;
  impostor.async_accept([&](boost::system::error_code failed, asio::ip::tcp::socket socket) {
    ASSERT_FALSE(failed);
    caller.emplace(std::move(socket));
    write_raw(*caller, challenge);
    write_raw(*caller, wire::Bytes(verdict_bytes));  // welcome, with a proof of zeros
  });
  const auto connection = connect_now(io, TcpAddress{"127.0.0.1", impostor.local_endpoint().port()}, options);
  ASSERT_FALSE(connection.ok());
  EXPECT_NE(connection.error().message.find("wrong token"), std::string::npos) << connection.error().message;
}

// many handshakes -----------------------------------------------------------------------------------------------------------------

TEST_F(Handshake, Drops_the_oldest_of_too_many_and_admits_good_clients) {
  options.handshakes = 8;
  listen_here();
  std::vector<Stream> slow_clients;
  for (int i = 0; i < 20; ++i) slow_clients.push_back(client());
  expect_refused("8 handshakes were in progress", 12);
  expect_a_good_peer_comes_in();
}

TEST_F(Handshake, Ten_thousand_early_disconnects_disturb_no_connection) {
  listen_here();
  auto pair = connect_now(io, acceptor->address(), options);
  ASSERT_TRUE(pair.ok());
  ASSERT_TRUE(run_until(io, [&] { return incoming.connections.size() == 1; }));
  RecordingCallbacks left, right;
  (*pair)->start(left);
  incoming.connections[0]->start(right);
  constexpr std::uint32_t connect_unauthenticated = 10'000;
  for (std::uint32_t i = 0; i < connect_unauthenticated; ++i) {
    Stream stream = client();
    const ::linger at_once{.l_onoff = 1, .l_linger = 0};  // leaves no port in TIME_WAIT
    ::setsockopt(stream.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    if (i % 2 == 0) write_raw(stream, noise(i % 200, i));
    (*pair)->send(wire::Heartbeat{.worker = {i}});
    run_ready(io);
  }
  ASSERT_TRUE(run_until(
      io, [&] { return right.messages.size() == connect_unauthenticated && incoming.refusals.size() == connect_unauthenticated; }));
  EXPECT_FALSE(left.ended() || right.ended());
  expect_a_good_peer_comes_in();
}

// listening and connecting ---------------------------------------------------------------------------------------------------------

TEST_F(Handshake, Listening_beyond_loopback_needs_a_token) {
  const auto listening = listen(io, TcpAddress{"0.0.0.0", 0}, Options{}, incoming);
  ASSERT_FALSE(listening.ok());
  EXPECT_EQ(listening.error().next, Next::tell_user);
  EXPECT_NE(listening.error().message.find("there is no token; give"), std::string::npos) << listening.error().message;
}

TEST_F(Handshake, Port_in_use_is_named) {
  listen_here();
  const auto second = listen(io, acceptor->address(), options, incoming);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().message.find(to_text(acceptor->address())), std::string::npos) << second.error().message;
}

TEST_F(Handshake, Stale_unix_socket_is_replaced_and_a_live_one_is_not) {
  const UnixAddress address = fresh_socket();
  { asio::local::stream_protocol::acceptor dead(io, asio::local::stream_protocol::endpoint(address.path)); }
  auto first = listen(io, address, options, incoming);
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_FALSE(listen(io, address, options, incoming).ok());
  EXPECT_TRUE(connect_now(io, address, options).ok());
  first->reset();
  EXPECT_FALSE(std::filesystem::exists(address.path));
}

TEST_F(Handshake, File_that_is_no_socket_is_kept) {
  const UnixAddress address = fresh_socket();
  std::ofstream(address.path) << "precious";
  EXPECT_FALSE(listen(io, address, options, incoming).ok());
  EXPECT_TRUE(std::filesystem::is_regular_file(address.path));
  std::filesystem::remove(address.path);
}

TEST_F(Handshake, Connecting_without_a_listener_is_an_error_with_a_remedy) {
  listen_here();
  const Address unused = acceptor->address();
  acceptor.reset();
  for (const Address& address : {unused, Address{fresh_socket()}}) {
    const auto connection = connect_now(io, address, options);
    ASSERT_FALSE(connection.ok());
    EXPECT_EQ(connection.error().next, Next::give_up);
    EXPECT_NE(connection.error().message.find("is a Motley server listening there?"), std::string::npos) << connection.error().message;
  }
}

TEST_F(Handshake, Connecting_to_a_silent_listener_ends_at_the_deadline) {
  asio::ip::tcp::acceptor silent(io, {asio::ip::make_address("127.0.0.1"), 0});
  options.handshake_time = 20ms;
  const auto connection = connect_now(io, TcpAddress{"127.0.0.1", silent.local_endpoint().port()}, options);
  ASSERT_FALSE(connection.ok());
  EXPECT_NE(connection.error().message.find("no answer within 20 ms"), std::string::npos) << connection.error().message;
}

TEST_F(Handshake, Host_names_and_IPv6_addresses_work) {
  for (const char* host : {"localhost", "::1"}) {
    auto listening = listen(io, TcpAddress{host, 0}, options, incoming);
    if (!listening.ok()) continue;  // a machine without IPv6
    EXPECT_TRUE(connect_now(io, (*listening)->address(), options).ok()) << host;
  }
}

TEST_F(Handshake, Destroyed_listener_drops_unfinished_handshakes) {
  listen_here();
  Stream half = client();
  EXPECT_TRUE(authenticate_now(io, half, Lane::control, Session{}, options).ok());
  acceptor.reset();
  run_ready(io);
  EXPECT_TRUE(incoming.refusals.empty());
}

}  // namespace
}  // namespace motley::transport
