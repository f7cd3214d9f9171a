// Two peers end up with the same bulk lane, whatever each can and wants; a peer that lies about its memory, or dies, is survived.
#include "transport/bulk_terms.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <boost/asio/local/connect_pair.hpp>
#include <csignal>

#include "transport/segment.h"
#include "transport/shared_bulk.h"
#include "transport/stranger_for_tests.h"
#include "transport/stream_bulk.h"

namespace motley::transport {
namespace {

using Lanes = Result<std::shared_ptr<BulkLane>>;

class BulkTerms : public testing::Test {
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
        io, [&stream, &answer, &wanted = options.back()]() -> asio::awaitable<void> { answer = co_await agree_on_bulk(stream, wanted); },
        rethrow);
  }
  void agree(Bulk wish_here, Bulk wish_there) {
    agree(here, wish_here, ours);
    agree(there, wish_there, theirs);
    ASSERT_TRUE(run_until(io, [&] { return ours && theirs; }));
  }
  /// One that offers what it likes, to one that takes what it can.
  void offer(std::size_t ring_bytes, const wire::Bytes& key) {
    wire::Bytes bytes;
    wire::Appender to{bytes};
    to.put(key.size(), 2);
    to.put(ring_bytes, 4);
    bytes.resize(bytes.size() + 16);
    bytes.insert(bytes.end(), key.begin(), key.end());
    bytes.push_back(std::byte{1});  // it has found ours, or so it says
    agree(here, Bulk::automatic, ours);
    write_raw(there, bytes);
    ASSERT_TRUE(run_until(io, [&] { return ours.has_value(); }));
  }
  static bool shared(const Lanes& lane) { return lane.ok() && std::dynamic_pointer_cast<SharedBulk>(*lane) != nullptr; }
  static bool on_the_stream(const Lanes& lane) { return lane.ok() && std::dynamic_pointer_cast<StreamBulk>(*lane) != nullptr; }

  asio::io_context io{1};
  Stream here{io}, there{io};
  std::deque<Options> options;
  std::optional<Lanes> ours, theirs;
};

TEST_F(BulkTerms, MemoryIsSharedByItselfWhereTheBuildCan) {
  agree(Bulk::automatic, Bulk::automatic);
  EXPECT_EQ(shared(*ours), has_segments());
  EXPECT_EQ(shared(*theirs), has_segments());
  EXPECT_EQ(on_the_stream(*ours), !has_segments());
}

TEST_F(BulkTerms, OneSideThatWantsNoneIsEnoughForTheStream) {
  agree(Bulk::automatic, Bulk::tcp);
  EXPECT_TRUE(on_the_stream(*ours));
  EXPECT_TRUE(on_the_stream(*theirs));
}

TEST_F(BulkTerms, WhatIsForcedAndCannotBeHadIsRefusedByName) {
  agree(Bulk::ucx, Bulk::tcp);
  EXPECT_TRUE(on_the_stream(*theirs));
  ASSERT_FALSE(ours->ok());
  EXPECT_EQ(ours->error().next, Next::tell_user);
  const std::string because = has_segments() ? "the other side offers no shared memory" : "this build of Motley has no UCX";
  EXPECT_NE(ours->error().message.find(because), std::string::npos) << ours->error().message;
}

TEST_F(BulkTerms, AKeyThatNamesNothingLeadsBackToTheStream) {
  if (!has_segments()) GTEST_SKIP() << "this build has no shared memory";
  for (const std::size_t key_bytes : {1U, 8U, 16U, 24U, 32U, 40U, 256U}) {
    SCOPED_TRACE(key_bytes);
    SetUp();
    ours.reset();
    offer(1 << 20, noise(key_bytes, key_bytes));
    EXPECT_TRUE(on_the_stream(*ours));
  }
}

TEST_F(BulkTerms, MemoryOfAnotherPlaceIsNotLookedFor) {
  if (!has_segments()) GTEST_SKIP() << "this build has no shared memory";
  auto made = make_segment(1 << 20);
  ASSERT_TRUE(made.ok()) << made.error().message;
  ASSERT_TRUE(find_segment(made->key, 1 << 20).ok());
  for (const std::size_t wrong : {0U, 36U, 44U}) {  // the machine, the namespace of processes, the user
    made->key[wrong] ^= std::byte{1};
    const auto found = find_segment(made->key, 1 << 20);
    ASSERT_FALSE(found.ok());
    EXPECT_NE(found.error().message.find("another machine"), std::string::npos) << found.error().message;
    made->key[wrong] ^= std::byte{1};
  }
}

TEST_F(BulkTerms, MemoryWithoutItsMarkIsNotThePeers) {
  if (!has_segments()) GTEST_SKIP() << "this build has no shared memory";
  auto elsewhere = make_segment(1 << 20);
  ASSERT_TRUE(elsewhere.ok()) << elsewhere.error().message;
  elsewhere->memory->bytes()[0] = std::byte{1};
  offer(1 << 20, elsewhere->key);
  EXPECT_TRUE(on_the_stream(*ours));
}

TEST_F(BulkTerms, AnOfferBeyondMeasureIsRefused) {
  offer(1 << 20, wire::Bytes(longest_segment_key + 1));
  EXPECT_EQ(ours->error().next, Next::drop_peer);
  SetUp();
  ours.reset();
  offer(std::size_t{1} << 31, wire::Bytes(24));
  EXPECT_EQ(ours->error().next, Next::drop_peer);
}

TEST_F(BulkTerms, APeerThatBreaksOffIsAnError) {
  agree(here, Bulk::automatic, ours);
  close_quietly(there);
  ASSERT_TRUE(run_until(io, [&] { return ours.has_value(); }));
  EXPECT_EQ(ours->error().next, Next::drop_peer);
}

/// The other side in a process of its own: sends slices until it is killed.
[[noreturn]] void send_for_ever(const Address& address) {
  asio::io_context io(1);
  Ear ear;
  const Memory memory = pattern(1 << 20, 0);
  auto connection = connect_now(io, address, with({}, Bulk::ucx));
  if (!connection.ok()) ::_exit(1);
  (*connection)->start(ear);
  ear.when_sent = [&] { (*connection)->send(Parcel{push_of(0), memory, 0, 0}); };
  for (int i = 0; i < 4; ++i) (*connection)->send(Parcel{push_of(0), memory, 0, 0});
  io.run();
  ::_exit(2);
}

TEST(ADeadProcess, IsMissedInMidSlice) {
  if (!has_segments()) GTEST_SKIP() << "this build has no shared memory";
  const UnixAddress address = fresh_socket();
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  const pid_t child = ::fork();  // before there is an io_context here
  if (child == 0) {
    char go = 0;
    if (::read(ready[0], &go, 1) == 1) send_for_ever(address);
    ::_exit(3);
  }
  asio::io_context io(1);
  Door door;
  Ear ear;
  auto acceptor = listen(io, address, with({}, Bulk::ucx), door);
  ASSERT_TRUE(acceptor.ok()) << acceptor.error().message;
  ASSERT_EQ(::write(ready[1], "!", 1), 1);
  ASSERT_TRUE(run_until(io, [&] { return door.guests.size() == 1; }));
  door.guests[0]->start(ear);
  ASSERT_TRUE(run_until(io, [&] { return ear.arrived.size() >= 10; }));
  ::kill(child, SIGKILL);
  ASSERT_TRUE(run_until(io, [&] { return ear.ended(); }));
  EXPECT_TRUE(ear.slices.at(0) == pattern(1 << 20, 0));
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
}

}  // namespace
}  // namespace motley::transport
