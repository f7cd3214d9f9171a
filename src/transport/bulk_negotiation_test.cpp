// Both peers choose the same bulk lane; a peer that lies about its memory, or dies, harms nobody else.
#include "transport/bulk_negotiation.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <boost/asio/local/connect_pair.hpp>
#include <csignal>

#include "transport/descriptor_passing.h"
#include "transport/invalid_memory_for_tests.h"
#include "transport/raw_client_for_tests.h"
#include "transport/segment.h"
#include "transport/shared_bulk.h"
#include "transport/stream_bulk.h"

namespace motley::transport {
namespace {

using Lanes = Result<std::shared_ptr<BulkLane>>;

class BulkNegotiation : public testing::Test {
 protected:
  void SetUp() override {
    asio::local::stream_protocol::socket a(io), b(io);
    asio::local::connect_pair(a, b);
    here = Stream(std::move(a));
    there = Stream(std::move(b));
  }
  void agree(Stream& stream, Bulk wish, std::optional<Lanes>& answer) {
    options.push_back(with({}, wish));
    asio::co_spawn(
        io, [&stream, &answer, &wanted = options.back()]() -> asio::awaitable<void> { answer = co_await negotiate_bulk(stream, wanted); },
        rethrow);
  }
  void agree(Bulk wish_here, Bulk wish_there) {
    agree(here, wish_here, ours);
    agree(there, wish_there, theirs);
    ASSERT_TRUE(run_until(io, [&] { return ours && theirs; }));
  }
  [[nodiscard]] static wire::Bytes offer_of(pid_t process, std::size_t ring_bytes) {
    wire::Bytes bytes;
    wire::Appender to{bytes};
    to.put(8, 2);
    to.put(static_cast<std::uint64_t>(process), 4);
    to.put(ring_bytes, 4);
    bytes.push_back(std::byte{1});  // claims to have mapped our memory
    return bytes;
  }
  /// The first end sends `bytes`, the second negotiates automatically.
  void offer(const wire::Bytes& bytes, int file) {
    agree(here, Bulk::automatic, ours);
    if (file < 0)
      write_raw(there, bytes);
    else
      write_raw_with_file(there, bytes, file);
    ASSERT_TRUE(run_until(io, [&] { return ours.has_value(); }));
  }
  void once_more() {
    SetUp();
    ours.reset();
    theirs.reset();
  }
  static bool shared(const Lanes& lane) { return lane.ok() && std::dynamic_pointer_cast<SharedBulk>(*lane) != nullptr; }
  static bool on_the_stream(const Lanes& lane) { return lane.ok() && std::dynamic_pointer_cast<StreamBulk>(*lane) != nullptr; }

  asio::io_context io{1};
  Stream here{io}, there{io};
  std::deque<Options> options;
  std::optional<Lanes> ours, theirs;
};

TEST_F(BulkNegotiation, Shares_memory_automatically_when_the_kernel_can) {
  agree(Bulk::automatic, Bulk::automatic);
  EXPECT_EQ(shared(*ours), has_segments());
  EXPECT_EQ(shared(*theirs), has_segments());
  EXPECT_EQ(on_the_stream(*ours), !has_segments());
}

TEST_F(BulkNegotiation, Uses_the_stream_when_one_side_wants_no_memory) {
  agree(Bulk::automatic, Bulk::tcp);
  EXPECT_TRUE(on_the_stream(*ours));
  EXPECT_TRUE(on_the_stream(*theirs));
}

TEST_F(BulkNegotiation, Fails_when_required_memory_is_not_available) {
  if (!has_segments()) GTEST_SKIP() << "this kernel has no sealed memory";
  agree(Bulk::shared, Bulk::tcp);
  EXPECT_TRUE(on_the_stream(*theirs));
  ASSERT_FALSE(ours->ok());
  EXPECT_EQ(ours->error().next, Next::tell_user);
  EXPECT_NE(ours->error().message.find("the other side offers no shared memory"), std::string::npos) << ours->error().message;
}

TEST_F(BulkNegotiation, Offers_no_memory_over_loopback_tcp) {
  const auto connected = [this] {
    asio::ip::tcp::acceptor listener(io, {asio::ip::make_address("127.0.0.1"), 0});
    asio::ip::tcp::socket a(io);
    a.connect(listener.local_endpoint());
    here = Stream(std::move(a));
    there = Stream(listener.accept());
  };
  connected();
  agree(here, Bulk::automatic, ours);
  EXPECT_EQ(read_raw(io, there, 2), wire::Bytes(2));
  write_raw(there, offer_of(::getpid(), 1 << 20));
  ASSERT_TRUE(run_until(io, [&] { return ours.has_value(); }));
  EXPECT_TRUE(on_the_stream(*ours)) << "although the other side offers memory";

  connected();
  ours.reset();
  agree(Bulk::shared, Bulk::automatic);
  EXPECT_TRUE(on_the_stream(*theirs));
  ASSERT_FALSE(ours->ok());
  EXPECT_NE(ours->error().message.find("unix"), std::string::npos) << ours->error().message;
}

TEST_F(BulkNegotiation, Uses_the_stream_when_the_offered_memory_is_invalid) {
  if (!has_segments()) GTEST_SKIP() << "this kernel has no sealed memory";
  constexpr std::size_t ring_bytes = 4 << 20;
  for (const Invalid& invalid : invalid_memory(ring_bytes)) {
    SCOPED_TRACE(invalid.what);
    once_more();
    offer(offer_of(::getpid(), invalid.claimed_bytes), invalid.file.number());
    EXPECT_TRUE(on_the_stream(*ours));
  }
  once_more();
  offer(offer_of(::getpid(), ring_bytes), -1);
  EXPECT_TRUE(on_the_stream(*ours)) << "memory that was offered and not sent";
  once_more();
  offer(offer_of(::getpid(), ring_bytes), memory_sealed_by(F_SEAL_SHRINK, ring_bytes).number());
  EXPECT_TRUE(shared(*ours)) << "the same with good memory";
}

TEST_F(BulkNegotiation, Refuses_memory_of_a_process_that_is_not_the_peer) {
  if (!has_segments()) GTEST_SKIP() << "this kernel has no sealed memory";
  const auto memory = make_segment(1 << 20);
  ASSERT_TRUE(memory.ok()) << memory.error().message;
  offer(offer_of(::getppid(), 1 << 20), memory->file->number());
  EXPECT_TRUE(on_the_stream(*ours));
}

TEST_F(BulkNegotiation, Refuses_our_own_memory) {
  if (!has_segments()) GTEST_SKIP() << "this kernel has no sealed memory";
  agree(here, Bulk::automatic, ours);
  ASSERT_TRUE(run_until(io, [&] { return there.available() >= 10; }));
  wire::Bytes first(1);
  const Descriptor echoed = read_raw_with_file(there, first);
  ASSERT_GE(echoed.number(), 0);
  write_raw_with_file(there, offer_of(::getpid(), with({}, Bulk::automatic).ring_bytes), echoed.number());
  ASSERT_TRUE(run_until(io, [&] { return ours.has_value(); }));
  EXPECT_TRUE(on_the_stream(*ours));
}

TEST_F(BulkNegotiation, Offers_nothing_to_a_process_of_another_user) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  asio::local::stream_protocol::acceptor listener(io, asio::local::stream_protocol::endpoint(fresh_socket().path));
  const std::string path = listener.local_endpoint().path();
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  std::array<int, 2> done{};
  ASSERT_EQ(::pipe(done.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t nobody = 65534;
    asio::io_context other(1);
    asio::local::stream_protocol::socket socket(other);
    boost::system::error_code failed;
    if (::setresuid(nobody, nobody, nobody) == 0) socket.connect(asio::local::stream_protocol::endpoint(path), failed);
    ::close(done[1]);
    char end = 0;
    ::_exit(failed || ::read(done[0], &end, 1) != 0 ? 1 : 0);
  }
  Stream stream(listener.accept());
  const auto process = process_of_our_user(stream);
  ASSERT_FALSE(process.ok());
  EXPECT_NE(process.error().message.find("user 65534"), std::string::npos) << process.error().message;
  ::close(done[0]);
  ::close(done[1]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  ::unlink(path.c_str());
}

TEST_F(BulkNegotiation, Refuses_an_offer_beyond_the_limit) {
  wire::Bytes long_one = offer_of(::getpid(), 1 << 20);
  long_one[0] = std::byte{9};
  offer(long_one, -1);
  EXPECT_EQ(ours->error().next, Next::drop_peer);
  for (const std::size_t ring_bytes : {std::size_t{1}, std::size_t{1} << 31}) {
    once_more();
    offer(offer_of(::getpid(), ring_bytes), -1);
    EXPECT_EQ(ours->error().next, Next::drop_peer);
  }
}

TEST_F(BulkNegotiation, Fails_when_the_peer_disconnects) {
  agree(here, Bulk::automatic, ours);
  close_quietly(there);
  ASSERT_TRUE(run_until(io, [&] { return ours.has_value(); }));
  EXPECT_EQ(ours->error().next, Next::drop_peer);
}

/// The other side, in its own process: sends slices until it is killed.
[[noreturn]] void send_for_ever(const Address& address) {
  asio::io_context io(1);
  RecordingCallbacks callbacks;
  const Memory memory = pattern(1 << 20, 0);
  auto connection = connect_now(io, address, with({}, Bulk::shared));
  if (!connection.ok()) ::_exit(1);
  (*connection)->start(callbacks);
  callbacks.when_sent = [&] { (*connection)->send(BulkMessage{push_of(0), memory, 0, 0}); };
  for (int i = 0; i < 4; ++i) (*connection)->send(BulkMessage{push_of(0), memory, 0, 0});
  io.run();
  ::_exit(2);
}

TEST(SharedMemoryPeer, Is_lost_when_its_process_dies_within_a_slice) {
  if (!has_segments()) GTEST_SKIP() << "this kernel has no sealed memory";
  const UnixAddress address = fresh_socket();
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  const pid_t child = ::fork();  // before this process has an io_context
  if (child == 0) {
    char go = 0;
    if (::read(ready[0], &go, 1) == 1) send_for_ever(address);
    ::_exit(3);
  }
  asio::io_context io(1);
  RecordingAcceptor incoming;
  RecordingCallbacks callbacks;
  auto acceptor = listen(io, address, with({}, Bulk::shared), incoming);
  ASSERT_TRUE(acceptor.ok()) << acceptor.error().message;
  ASSERT_EQ(::write(ready[1], "!", 1), 1);
  ASSERT_TRUE(run_until(io, [&] { return incoming.connections.size() == 1; }));
  incoming.connections[0]->start(callbacks);
  ASSERT_TRUE(run_until(io, [&] { return callbacks.arrived.size() >= 10; }));
  ::kill(child, SIGKILL);
  ASSERT_TRUE(run_until(io, [&] { return callbacks.ended(); }));
  EXPECT_TRUE(callbacks.slices.at(0) == pattern(1 << 20, 0));
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
}

}  // namespace
}  // namespace motley::transport
