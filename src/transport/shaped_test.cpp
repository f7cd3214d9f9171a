// Shaped connections: nothing is faster than its link, connections of one card take turns. Only "not before" is asked of the clock: a slow
// machine cannot make that fail.
#include "transport/shaped.h"

#include <gtest/gtest.h>

#include "transport/pairs_for_tests.h"

namespace motley::transport {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class ShapedLink : public testing::Test {
 protected:
  boost::asio::io_context io{1};
  Options options;
  Memory memory = pattern(10'000, 1);

  std::shared_ptr<Pipe> pipe(double bytes_per_second) { return std::make_shared<Pipe>(io.get_executor(), bytes_per_second); }

  /// A pair whose left side sends through `shape`.
  Pair shaped_left(Shape shape) {
    Pair pair = loopback_pair(io, options);
    pair.left = std::make_unique<Shaped>(std::move(pair.left), io.get_executor(), std::move(shape), options);
    return pair;
  }
  void send(Connection& from, std::uint32_t slice, std::uint32_t priority = 0) {
    from.send(Parcel{push_of(slice), memory, priority, slice});
  }
};

TEST_F(ShapedLink, ASliceIsNotThroughBeforeItsTime) {
  Ear left, right;
  Pair pair = shaped_left({.up = pipe(1e6)});
  pair.left->start(left);
  pair.right->start(right);
  const auto begun = Clock::now();
  for (std::uint32_t i = 0; i < 5; ++i) send(*pair.left, i);  // 10 ms each
  ASSERT_TRUE(run_until(io, [&] { return right.arrived.size() == 5; }));
  EXPECT_GE(Clock::now() - begun, 50ms - 2ms);  // the bucket is 2 ms deep
}

TEST_F(ShapedLink, NeitherMessagesNorSlicesComeBeforeTheLatency) {
  Ear left, right;
  Pair pair = shaped_left({.up = pipe(1e9), .latency = 10ms});
  pair.left->start(left);
  pair.right->start(right);
  const auto begun = Clock::now();
  pair.left->send(wire::Stop{});
  send(*pair.left, 1);
  ASSERT_TRUE(run_until(io, [&] { return right.messages.size() + right.arrived.size() == 1; }));
  EXPECT_GE(Clock::now() - begun, 10ms);
  ASSERT_TRUE(run_until(io, [&] { return right.messages.size() + right.arrived.size() == 2; }));
}

TEST_F(ShapedLink, AnUrgentSliceOvertakesAllThatWaitForThePipe) {
  Ear left, right;
  Pair pair = shaped_left({.up = pipe(1e7)});
  pair.left->start(left);
  pair.right->start(right);
  for (std::uint32_t i = 0; i < 20; ++i) send(*pair.left, i, 5);
  ASSERT_TRUE(run_until(io, [&] { return right.arrived.size() == 3; }));
  send(*pair.left, 99, 0);
  ASSERT_TRUE(run_until(io, [&] { return right.arrived.size() == 21; }));
  EXPECT_LE(std::find(right.arrived.begin(), right.arrived.end(), 99U) - right.arrived.begin(), 5);
}

TEST_F(ShapedLink, ConnectionsOfOneCardTakeTurns) {
  const auto card = pipe(1e7);
  Ear sender, receiver;
  Pair a = shaped_left({.up = card}), b = shaped_left({.up = card});
  for (Pair* pair : {&a, &b}) {
    pair->left->start(sender);
    pair->right->start(receiver);
  }
  run_ready(io);  // the windows are granted
  for (std::uint32_t i = 0; i < 8; ++i) {
    send(*a.left, i);
    send(*b.left, 100 + i);
  }
  ASSERT_TRUE(run_until(io, [&] { return receiver.arrived.size() == 16; }));
  EXPECT_EQ(receiver.arrived, (std::vector<std::uint32_t>{0, 100, 1, 101, 2, 102, 3, 103, 4, 104, 5, 105, 6, 106, 7, 107}));
}

TEST_F(ShapedLink, OneThatIsGoneLeavesTheCardToTheOthers) {
  const auto card = pipe(1e7);
  Ear sender, receiver;
  Pair a = shaped_left({.up = card}), b = shaped_left({.up = card});
  for (Pair* pair : {&a, &b}) {
    pair->left->start(sender);
    pair->right->start(receiver);
  }
  for (std::uint32_t i = 0; i < 8; ++i) {
    send(*a.left, i);
    send(*b.left, 100 + i);
  }
  ASSERT_TRUE(run_until(io, [&] { return receiver.arrived.size() == 4; }));
  a.left.reset();
  ASSERT_TRUE(run_until(io, [&] { return receiver.slices.count(107) == 1 && receiver.ended(); }));
}

}  // namespace
}  // namespace motley::transport
