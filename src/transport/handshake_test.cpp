// Doors shut: who does not know the token, the version or the job, who dawdles or babbles, stays outside; all others come in undisturbed.
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
  Options options{.token = "open sesame"};
  Door door;
  std::unique_ptr<Acceptor> acceptor;

  void listen_here() {
    auto listening = listen(io, TcpAddress{"127.0.0.1", 0}, options, door);
    ASSERT_TRUE(listening.ok()) << listening.error().message;
    acceptor = std::move(listening).value();
  }
  Stream stranger() { return raw_stream(io, acceptor->address()); }

  void expect_connect_fails(const Options& with, std::string_view because) {
    const auto connection = connect_now(io, acceptor->address(), with);
    ASSERT_FALSE(connection.ok());
    EXPECT_NE(connection.error().message.find(because), std::string::npos) << connection.error().message;
  }
  void expect_refused(std::string_view because, std::size_t nth = 1) {
    ASSERT_TRUE(run_until(io, [&] { return door.refusals.size() >= nth; }));
    EXPECT_NE(door.refusals[nth - 1].find(because), std::string::npos) << door.refusals[nth - 1];
  }
  void expect_a_good_peer_comes_in() {
    const std::size_t before = door.pending_workers.size();
    const auto connection = connect_now(io, acceptor->address(), options);
    ASSERT_TRUE(connection.ok()) << connection.error().message;
    ASSERT_TRUE(run_until(io, [&] { return door.pending_workers.size() == before + 1; }));
  }
};

TEST_F(Handshake, LetsInWhoKnowsTheToken) {
  listen_here();
  expect_a_good_peer_comes_in();
  expect_a_good_peer_comes_in();
  EXPECT_TRUE(door.refusals.empty());
}

TEST_F(Handshake, RefusesAWrongToken) {
  listen_here();
  expect_connect_fails({.token = "open barley"}, "wrong token");
  expect_refused("wrong token");
  expect_connect_fails({}, "wrong token");
  expect_a_good_peer_comes_in();
}

TEST_F(Handshake, RefusesAnotherJob) {
  options.job[0] = std::byte{7};
  listen_here();
  Options other = options;
  other.job[31] = std::byte{1};
  expect_connect_fails(other, "another job");
  expect_refused("another job");
  expect_a_good_peer_comes_in();
}

TEST_F(Handshake, LetsInANewcomerThatTakesAnyJobButOnlyWithTheToken) {
  options.job[0] = std::byte{7};
  listen_here();
  Options joining = options;
  joining.job = any_job;
  EXPECT_TRUE(connect_now(io, acceptor->address(), joining).ok());
  ASSERT_TRUE(run_until(io, [&] { return door.pending_workers.size() == 1; }));
  joining.token = "open barley";
  expect_connect_fails(joining, "wrong token");
}

TEST_F(Handshake, AListenerWithoutAJobRefusesOneThatHasOne) {
  ASSERT_EQ(options.job, any_job);
  listen_here();
  Options other = options;
  other.job[0] = std::byte{7};
  expect_connect_fails(other, "another job");
  EXPECT_TRUE(door.pending_workers.empty());
}

TEST_F(Handshake, RefusesAnotherVersionAndAnotherProtocol) {
  listen_here();
  const auto answer_with = [&](std::size_t place, std::byte changed) {
    Stream stream = stranger();
    wire::Bytes answer = read_raw(io, stream, challenge_bytes);  // its magic and version are right
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

TEST_F(Handshake, RefusesNoiseAndWhoHangsUp) {
  listen_here();
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Stream stream = stranger();
    wire::Bytes begun;  // well, and not brought to an end
    wire::Appender{begun}.put(handshake_magic, 4);
    wire::Appender{begun}.put(handshake_version, 2);
    begun.resize(seed);
    write_raw(stream, seed % 2 == 0 ? noise(answer_bytes, seed) : begun);
    if (seed % 2 == 1) close_quietly(stream);
    expect_refused(seed % 2 == 0 ? "does not speak Motley" : "broke off", seed + 1);
  }
  expect_a_good_peer_comes_in();
}

TEST_F(Handshake, RefusesWhoTakesTooLong) {
  options.handshake_time = 20ms;
  listen_here();
  Stream silent = stranger();
  expect_refused("took longer than 20 ms");
}

TEST_F(Handshake, RefusesAControlLaneWhoseBulkLaneDoesNotCome) {
  options.handshake_time = 20ms;
  listen_here();
  Stream half = stranger();
  EXPECT_TRUE(introduce_now(io, half, Lane::control, Session{}, options).ok());
  expect_refused("took longer than 20 ms");
  EXPECT_TRUE(door.pending_workers.empty());
}

TEST_F(Handshake, RefusesLanesOutOfOrder) {
  listen_here();
  Stream bulk = stranger(), control = stranger(), again = stranger();
  EXPECT_FALSE(introduce_now(io, bulk, Lane::bulk, Session{}, options).ok());
  expect_refused("whose control lane is not here");
  EXPECT_TRUE(introduce_now(io, control, Lane::control, Session{}, options).ok());
  EXPECT_FALSE(introduce_now(io, again, Lane::control, Session{}, options).ok());
  expect_refused("whose session is here already", 2);
}

TEST_F(Handshake, RefusesAProofThatIsReplayed) {
  listen_here();
  Exchange exchange;
  Stream first = stranger(), second = stranger();
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

TEST_F(Handshake, AServerMustKnowTheTokenToo) {
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

// many -----------------------------------------------------------------------------------------------------------------------------

TEST_F(Handshake, DropsTheOldestOfTooManyAndStillLetsGoodPeersIn) {
  options.handshakes = 8;
  listen_here();
  std::vector<Stream> dawdlers;
  for (int i = 0; i < 20; ++i) dawdlers.push_back(stranger());
  expect_refused("8 handshakes were under way", 12);
  expect_a_good_peer_comes_in();
}

TEST_F(Handshake, TenThousandWhoKnockAndRunDisturbNobody) {
  listen_here();
  auto pair = connect_now(io, acceptor->address(), options);
  ASSERT_TRUE(pair.ok());
  ASSERT_TRUE(run_until(io, [&] { return door.pending_workers.size() == 1; }));
  RecordingCallbacks left, right;
  (*pair)->start(left);
  door.pending_workers[0]->start(right);
  constexpr std::uint32_t strangers = 10'000;
  for (std::uint32_t i = 0; i < strangers; ++i) {
    Stream stream = stranger();
    const ::linger at_once{.l_onoff = 1, .l_linger = 0};  // leaves no port in TIME_WAIT
    ::setsockopt(stream.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    if (i % 2 == 0) write_raw(stream, noise(i % 200, i));
    (*pair)->send(wire::Heartbeat{.worker = {i}});
    run_ready(io);
  }
  ASSERT_TRUE(run_until(io, [&] { return right.messages.size() == strangers && door.refusals.size() == strangers; }));
  EXPECT_FALSE(left.ended() || right.ended());
  expect_a_good_peer_comes_in();
}

// listening and connecting ---------------------------------------------------------------------------------------------------------

TEST_F(Handshake, ListeningToTheWorldNeedsAToken) {
  const auto listening = listen(io, TcpAddress{"0.0.0.0", 0}, Options{}, door);
  ASSERT_FALSE(listening.ok());
  EXPECT_EQ(listening.error().next, Next::tell_user);
  EXPECT_NE(listening.error().message.find("there is no token; give"), std::string::npos) << listening.error().message;
}

TEST_F(Handshake, APortThatIsTakenIsNamed) {
  listen_here();
  const auto second = listen(io, acceptor->address(), options, door);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().message.find(to_text(acceptor->address())), std::string::npos) << second.error().message;
}

TEST_F(Handshake, AUnixSocketOfADeadProcessIsReplacedAndALiveOneIsNot) {
  const UnixAddress address = fresh_socket();
  { asio::local::stream_protocol::acceptor dead(io, asio::local::stream_protocol::endpoint(address.path)); }
  auto first = listen(io, address, options, door);
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_FALSE(listen(io, address, options, door).ok());
  EXPECT_TRUE(connect_now(io, address, options).ok());
  first->reset();
  EXPECT_FALSE(std::filesystem::exists(address.path));
}

TEST_F(Handshake, AFileThatIsNoSocketIsLeftAlone) {
  const UnixAddress address = fresh_socket();
  std::ofstream(address.path) << "precious";
  EXPECT_FALSE(listen(io, address, options, door).ok());
  EXPECT_TRUE(std::filesystem::is_regular_file(address.path));
  std::filesystem::remove(address.path);
}

TEST_F(Handshake, ConnectingToNobodyIsAnErrorWithARemedy) {
  listen_here();
  const Address nobody = acceptor->address();
  acceptor.reset();
  for (const Address& address : {nobody, Address{fresh_socket()}}) {
    const auto connection = connect_now(io, address, options);
    ASSERT_FALSE(connection.ok());
    EXPECT_EQ(connection.error().next, Next::give_up);
    EXPECT_NE(connection.error().message.find("is a Motley server listening there?"), std::string::npos) << connection.error().message;
  }
}

TEST_F(Handshake, ConnectingToOneWhoIsSilentEndsInTime) {
  asio::ip::tcp::acceptor silent(io, {asio::ip::make_address("127.0.0.1"), 0});
  options.handshake_time = 20ms;
  const auto connection = connect_now(io, TcpAddress{"127.0.0.1", silent.local_endpoint().port()}, options);
  ASSERT_FALSE(connection.ok());
  EXPECT_NE(connection.error().message.find("no answer within 20 ms"), std::string::npos) << connection.error().message;
}

TEST_F(Handshake, NamesAndIPv6AreUnderstood) {
  for (const char* host : {"localhost", "::1"}) {
    auto listening = listen(io, TcpAddress{host, 0}, options, door);
    if (!listening.ok()) continue;  // a machine without IPv6
    EXPECT_TRUE(connect_now(io, (*listening)->address(), options).ok()) << host;
  }
}

TEST_F(Handshake, AListenerThatIsGoneForgetsWhoIsHalfInside) {
  listen_here();
  Stream half = stranger();
  EXPECT_TRUE(introduce_now(io, half, Lane::control, Session{}, options).ok());
  acceptor.reset();
  run_ready(io);
  EXPECT_TRUE(door.refusals.empty());
}

}  // namespace
}  // namespace motley::transport
