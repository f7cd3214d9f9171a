// Strangers by the thousand: they are bounded, they cost nobody who knows the token a place, and an honest newcomer still gets in.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <deque>

#include "transport/raw_client_for_tests.h"

namespace motley::transport {
namespace {

using namespace std::chrono_literals;

constexpr Options few_places() {
  Options options;
  options.handshake_time = std::chrono::hours(1);  // nobody goes because of the time
  options.handshakes = 32;
  return options;
}

class Flood : public testing::Test {
 protected:
  void listen_here() {
    auto listening = listen(io, TcpAddress{"127.0.0.1", 0}, options, door);
    ASSERT_TRUE(listening.ok()) << listening.error().message;
    acceptor = std::move(listening).value();
  }
  /// Each stays until so many have come after it.
  void strangers(int number) {
    constexpr std::size_t at_a_time = 200;
    for (int i = 0; i < number; ++i) {
      Stream& stranger = crowd.emplace_back(raw_stream(io, acceptor->address()));
      const ::linger at_once{.l_onoff = 1, .l_linger = 0};  // leaves no port in TIME_WAIT
      ::setsockopt(stranger.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
      boost::system::error_code ignored;
      if (i % 2 == 0) asio::write(stranger, asio::buffer("MTL", 3), ignored);  // as far as they keep to it
      if (crowd.size() > at_a_time) crowd.pop_front();
    }
  }
  [[nodiscard]] bool anybody_refused_for(std::string_view because) const {
    return std::any_of(door.refusals.begin(), door.refusals.end(),
                       [&](const std::string& why) { return why.find(because) != std::string::npos; });
  }

  asio::io_context io{1};
  Options options = [] {
    Options made = few_places();
    made.token = "open sesame";
    return made;
  }();
  Door door;
  std::unique_ptr<Acceptor> acceptor;
  std::deque<Stream> crowd;
};

TEST_F(Flood, OfTwoThousandStrangersLosesNoMemberAndLetsANewcomerIn) {
  listen_here();
  auto member = connect_now(io, acceptor->address(), options);
  ASSERT_TRUE(member.ok());
  ASSERT_TRUE(run_until(io, [&] { return door.pending_workers.size() == 1; }));
  RecordingCallbacks left, right;
  (*member)->start(left);
  door.pending_workers[0]->start(right);

  std::unique_ptr<Connection> joining;
  std::uint32_t waves = 0, attempts = 0;
  bool trying = false;
  for (; waves < 100; ++waves) {
    strangers(10);
    if (!trying && !joining) {
      trying = true;
      ++attempts;
      connect(io, acceptor->address(), options, [&](auto connected) {
        trying = false;
        if (connected.ok()) joining = std::move(*connected);
      });
    }
    strangers(10);
    (*member)->send(wire::Heartbeat{.worker = {waves}});
    run_ready(io);
  }
  ASSERT_TRUE(run_until(io, [&] { return right.messages.size() == waves && !trying; }));
  EXPECT_TRUE(joining) << "not let in in " << attempts << " attempts";
  EXPECT_FALSE(left.ended() || right.ended());
}

TEST_F(Flood, DropsNobodyWhoHasProvenTheToken) {
  listen_here();
  const Session session{};
  Stream control = raw_stream(io, acceptor->address());
  ASSERT_TRUE(introduce_now(io, control, Lane::control, session, options).ok());
  strangers(300);
  run_ready(io);
  Stream bulk = raw_stream(io, acceptor->address());
  const Outcome introduced = introduce_now(io, bulk, Lane::bulk, session, options);
  EXPECT_TRUE(introduced.ok()) << introduced.error().message;
}

TEST_F(Flood, OfThoseWhoKnowTheTokenIsBoundedToo) {
  listen_here();
  std::vector<Stream> bf16_transfer;
  for (std::uint8_t i = 0; i < 40; ++i) {
    Session session{};
    session[0] = std::byte{i};
    bf16_transfer.push_back(raw_stream(io, acceptor->address()));
    ASSERT_TRUE(introduce_now(io, bf16_transfer.back(), Lane::control, session, options).ok());
  }
  ASSERT_TRUE(run_until(io, [&] { return door.refusals.size() == 8; }));
  EXPECT_NE(door.refusals[0].find("32 connections waited for their other lane"), std::string::npos) << door.refusals[0];
  EXPECT_TRUE(connect_now(io, acceptor->address(), options).ok());
}

TEST_F(Flood, OfOtherProtocolsIsTurnedAwayAtTheFirstWrongByteAndNamed) {
  listen_here();
  Stream http = raw_stream(io, acceptor->address()), ssh = raw_stream(io, acceptor->address());
  boost::system::error_code ignored;
  asio::write(http, asio::buffer(std::string("GET / HTTP/1.1\r\n\r\n")), ignored);
  ASSERT_TRUE(run_until(io, [&] { return door.refusals.size() == 1; }));
  EXPECT_NE(door.refusals[0].find("\"GET / HTTP/1.1\""), std::string::npos) << door.refusals[0];
  asio::write(ssh, asio::buffer(std::string("\x1b[2J")), ignored);
  ASSERT_TRUE(run_until(io, [&] { return door.refusals.size() == 2; }));
  EXPECT_NE(door.refusals[1].find("\"?[2J\""), std::string::npos) << door.refusals[1];
}

TEST_F(Flood, OfOneByteAtATimeIsEndedByTheDeadline) {
  options.handshake_time = 50ms;
  listen_here();
  Stream slow = raw_stream(io, acceptor->address());
  const wire::Bytes opening = read_raw(io, slow, challenge_bytes);
  boost::system::error_code gone;
  for (std::size_t reported = 0; reported < 6; ++reported) {
    asio::write(slow, asio::buffer(&opening[reported], 1), gone);
    run_ready(io);
  }
  ASSERT_TRUE(run_until(io, [&] { return !door.refusals.empty(); }));
  EXPECT_NE(door.refusals[0].find("took longer than 50 ms"), std::string::npos) << door.refusals[0];
}

TEST_F(Flood, ThatTakesTheLastDescriptorNeitherEndsNorDeafensTheListener) {
  listen_here();
  strangers(20);  // in the listener's backlog: nothing has run yet
  Stream good = raw_stream(io, acceptor->address());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int lowest_free = ::dup(good.native_handle());
  ::close(lowest_free);
  rlimit tight = before;
  tight.rlim_cur = static_cast<rlim_t>(lowest_free) + 5;  // for five of them
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  EXPECT_TRUE(run_until(io, [&] { return door.refusals.size() >= 16; }));
  EXPECT_TRUE(anybody_refused_for("no file descriptor left"));
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(introduce_now(io, good, Lane::control, Session{}, options).ok());
  EXPECT_TRUE(connect_now(io, acceptor->address(), options).ok());
}

TEST_F(Flood, WithNobodyToDropTheListenerSaysThatItCannotAccept) {
  listen_here();
  Stream waiting = raw_stream(io, acceptor->address());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(waiting.native_handle());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_TRUE(run_until(io, [&] { return !door.refusals.empty(); }));
  EXPECT_TRUE(anybody_refused_for("accepting the connection failed"));
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(introduce_now(io, waiting, Lane::control, Session{}, options).ok());
}

}  // namespace
}  // namespace motley::transport
