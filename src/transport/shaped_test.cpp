// Shaped connections: no slice is faster than its link, and connections of one card take turns. Tests only demand "not before", which a
// slow machine cannot break.
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
  /// A pair whose right side receives through `shape`.
  Pair shaped_right(Shape shape) {
    Pair pair = loopback_pair(io, options);
    pair.right = std::make_unique<Shaped>(std::move(pair.right), io.get_executor(), std::move(shape), options);
    return pair;
  }
  /// Takes hours per slice.
  static std::shared_ptr<SharedLink> never() { return std::make_shared<SharedLink>(1.0); }

  void send(Connection& from, std::uint32_t slice, std::uint32_t priority = 0) {
    from.send(BulkMessage{push_of(slice), memory, priority, slice});
  }
};

TEST_F(ShapedLink, Slice_takes_at_least_the_time_of_its_link) {
  RecordingCallbacks left, right;
  Pair pair = shaped_left({.up = pipe(1e6)});
  pair.left->start(left);
  pair.right->start(right);
  const auto begun = Clock::now();
  for (std::uint32_t i = 0; i < 5; ++i) send(*pair.left, i);  // 10 ms each
  ASSERT_TRUE(run_until(io, [&] { return right.arrived.size() == 5; }));
  EXPECT_GE(Clock::now() - begun, 50ms - 2ms);  // the bucket is 2 ms deep
}

TEST_F(ShapedLink, Messages_and_slices_take_at_least_the_latency) {
  RecordingCallbacks left, right;
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

TEST_F(ShapedLink, Urgent_slice_overtakes_all_that_wait_for_the_pipe) {
  RecordingCallbacks left, right;
  Pair pair = shaped_left({.up = pipe(1e6)});  // so slow that no second slice enters the pipe on a busy machine
  pair.left->start(left);
  pair.right->start(right);
  for (std::uint32_t i = 0; i < 10; ++i) send(*pair.left, i, 5);
  ASSERT_TRUE(run_until(io, [&] { return right.arrived.size() >= 3; }));
  const std::size_t before = right.arrived.size();
  send(*pair.left, 99, 0);
  ASSERT_TRUE(run_until(io, [&] { return right.arrived.size() == 11; }));
  const auto place = static_cast<std::size_t>(std::find(right.arrived.begin(), right.arrived.end(), 99U) - right.arrived.begin());
  EXPECT_LE(place, before + 2);
}

TEST_F(ShapedLink, Connections_of_one_card_take_turns) {
  const auto card = pipe(1e7);
  RecordingCallbacks sender, receiver;
  Pair a = shaped_left({.up = card}), b = shaped_left({.up = card});
  for (Pair* pair : {&a, &b}) {
    pair->left->start(sender);
    pair->right->start(receiver);
  }
  run_ready(io);  // until the windows are granted
  for (std::uint32_t i = 0; i < 8; ++i) {
    send(*a.left, i);
    send(*b.left, 100 + i);
  }
  ASSERT_TRUE(run_until(io, [&] { return receiver.arrived.size() == 16; }));
  EXPECT_EQ(receiver.arrived, (std::vector<std::uint32_t>{0, 100, 1, 101, 2, 102, 3, 103, 4, 104, 5, 105, 6, 106, 7, 107}));
}

// beyond the pipe ------------------------------------------------------------------------------------------------------------------

TEST_F(ShapedLink, Connections_behind_one_uplink_share_its_rate) {
  const auto uplink = std::make_shared<SharedLink>(1e6);
  RecordingCallbacks sender, receiver;
  Pair a = shaped_left({.up = pipe(1e9), .beyond = {uplink}}), b = shaped_left({.up = pipe(1e9), .beyond = {uplink}});
  for (Pair* pair : {&a, &b}) {
    pair->left->start(sender);
    pair->right->start(receiver);
  }
  const auto begun = Clock::now();
  for (std::uint32_t i = 0; i < 3; ++i) {
    send(*a.left, i);  // 10 ms each
    send(*b.left, 100 + i);
  }
  ASSERT_TRUE(run_until(io, [&] { return receiver.arrived.size() == 6; }));
  EXPECT_GE(Clock::now() - begun, 60ms - 1ms);
}

// arriving -------------------------------------------------------------------------------------------------------------------------

TEST_F(ShapedLink, Slice_is_delivered_only_after_the_incoming_links) {
  RecordingCallbacks left, right;
  Pair pair = shaped_right({.in = {std::make_shared<SharedLink>(1e9), std::make_shared<SharedLink>(1e6)}, .peer_bytes_per_second = 1e9});
  pair.left->start(left);
  pair.right->start(right);
  const auto begun = Clock::now();
  for (std::uint32_t i = 0; i < 5; ++i) send(*pair.left, i);  // 10 ms each
  ASSERT_TRUE(run_until(io, [&] { return right.arrived.size() == 5; }));
  EXPECT_GE(Clock::now() - begun, 50ms - 1ms);
  EXPECT_EQ(right.arrived, (std::vector<std::uint32_t>{0, 1, 2, 3, 4}));
  for (std::uint32_t i = 0; i < 5; ++i) EXPECT_EQ(right.slices.at(i), memory);
}

TEST_F(ShapedLink, Incoming_connections_of_one_card_share_its_rate) {
  const auto card = std::make_shared<SharedLink>(1e6);
  RecordingCallbacks sender, receiver;
  Pair a = shaped_right({.in = {card}, .peer_bytes_per_second = 1e9}), b = shaped_right({.in = {card}, .peer_bytes_per_second = 1e9});
  for (Pair* pair : {&a, &b}) {
    pair->left->start(sender);
    pair->right->start(receiver);
  }
  run_ready(io);  // until the windows are granted
  const auto begun = Clock::now();
  for (std::uint32_t i = 0; i < 3; ++i) {
    send(*a.left, i);  // 10 ms each
    send(*b.left, 100 + i);
  }
  ASSERT_TRUE(run_until(io, [&] { return receiver.arrived.size() == 6; }));
  EXPECT_GE(Clock::now() - begun, 60ms - 1ms);
  EXPECT_EQ(receiver.arrived, (std::vector<std::uint32_t>{0, 100, 1, 101, 2, 102}));
}

TEST_F(ShapedLink, Delayed_slices_stop_the_sender_at_the_window) {
  options.window_bytes = 3 * memory.size();
  RecordingCallbacks left, right;
  Pair pair = shaped_right({.in = {never()}, .peer_bytes_per_second = 1e9});
  pair.left->start(left);
  pair.right->start(right);
  for (std::uint32_t i = 0; i < 10; ++i) send(*pair.left, i);
  ASSERT_TRUE(run_until(io, [&] { return left.tickets.size() == 3; }));
  pair.left->send(wire::Stop{});
  ASSERT_TRUE(run_until(io, [&] { return right.messages.size() == 1; }));
  run_ready(io);
  EXPECT_EQ(left.tickets.size(), 3U);
  EXPECT_TRUE(right.slices.empty()) << "no buffer is requested before the slice has passed the links";
  pair.right->resume();  // the owner never held, so this grants nothing for delayed slices
  run_ready(io);
  EXPECT_EQ(left.tickets.size(), 3U);
}

TEST_F(ShapedLink, Closing_drops_delayed_slices) {
  RecordingCallbacks left, right;
  Pair pair = shaped_right({.in = {never()}, .peer_bytes_per_second = 1e9});
  pair.left->start(left);
  pair.right->start(right);
  send(*pair.left, 1);
  ASSERT_TRUE(run_until(io, [&] { return left.tickets.size() == 1; }));
  pair.right->close("enough");
  ASSERT_TRUE(run_until(io, [&] { return left.ended() && right.ended(); }));
  EXPECT_TRUE(right.arrived.empty());
}

// reshaping ------------------------------------------------------------------------------------------------------------------------

TEST_F(ShapedLink, Reshaped_connection_has_the_new_rate) {
  RecordingCallbacks left, right;
  Pair pair = loopback_pair(io, options);
  auto shaped = std::make_unique<Shaped>(std::move(pair.left), io.get_executor(), Shape{}, options);
  Shaped* shape = shaped.get();
  pair.left = std::move(shaped);
  pair.left->start(left);
  pair.right->start(right);
  for (std::uint32_t i = 0; i < 8; ++i) send(*pair.left, i, 8 - i);
  const auto begun = Clock::now();
  shape->reshape({.up = pipe(1e6), .latency = 5ms});
  pair.left->send(wire::Stop{});
  for (std::uint32_t i = 8; i < 12; ++i) send(*pair.left, i, 0);  // urgent, but behind those already chosen
  ASSERT_TRUE(run_until(io, [&] { return right.messages.size() == 1; }));
  EXPECT_GE(Clock::now() - begun, 5ms);
  ASSERT_TRUE(run_until(io, [&] { return left.tickets.size() == 12 && right.arrived.size() == 12; }));
  EXPECT_GE(Clock::now() - begun, 45ms - 2ms);
  EXPECT_EQ(left.tickets, (std::vector<std::uint64_t>{7, 6, 5, 4, 3, 2, 1, 0, 8, 9, 10, 11}));
  EXPECT_EQ(pair.left->queued().bulk_bytes, 0U);
}

TEST_F(ShapedLink, Shaped_slice_waits_for_unsent_direct_slices) {
  options.window_bytes = 2 * memory.size();
  RecordingCallbacks left, right;
  Pair pair = loopback_pair(io, options);
  auto sends = std::make_unique<Shaped>(std::move(pair.left), io.get_executor(), Shape{}, options);
  sends->start(left);
  pair.right->start(right);
  pair.right->hold();
  for (std::uint32_t i = 0; i < 4; ++i) send(*sends, i, 5);
  run_ready(io);  // two have arrived, two wait for the window
  sends->reshape({.up = pipe(1e9)});
  send(*sends, 4, 0);
  run_ready(io);
  EXPECT_EQ(sends->queued().bulk_bytes, 3 * memory.size());
  pair.right->resume();
  ASSERT_TRUE(run_until(io, [&] { return right.arrived.size() == 5 && left.tickets.size() == 5; }));
  EXPECT_EQ(right.arrived, (std::vector<std::uint32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(sends->queued().bulk_bytes, 0U);
}

TEST_F(ShapedLink, Direct_slice_waits_for_delayed_slices) {
  RecordingCallbacks left, right;
  Pair pair = loopback_pair(io, options);
  auto sends = std::make_unique<Shaped>(std::move(pair.left), io.get_executor(), Shape{.up = pipe(1e9), .latency = 10ms}, options);
  sends->start(left);
  pair.right->start(right);
  send(*sends, 0);
  run_ready(io);  // through the pipe: the token bucket passes the first slice 2 ms early
  sends->reshape({});
  send(*sends, 1);
  ASSERT_TRUE(run_until(io, [&] { return right.arrived.size() == 2 && left.tickets.size() == 2; }));
  EXPECT_EQ(right.arrived, (std::vector<std::uint32_t>{0, 1}));
}

TEST_F(ShapedLink, Slices_in_flight_keep_their_shape_and_order) {
  RecordingCallbacks left, right;
  Pair pair = loopback_pair(io, options);
  auto sends = std::make_unique<Shaped>(std::move(pair.left), io.get_executor(), Shape{.up = pipe(1e6)}, options);
  auto callbacks = std::make_unique<Shaped>(std::move(pair.right), io.get_executor(),
                                            Shape{.in = {std::make_shared<SharedLink>(1e6)}, .peer_bytes_per_second = 1e9}, options);
  sends->start(left);
  callbacks->start(right);
  const auto begun = Clock::now();
  for (std::uint32_t i = 0; i < 3; ++i) send(*sends, i);
  ASSERT_TRUE(run_until(io, [&] { return left.tickets.size() == 1; }));  // one waits in the link, one is in the pipe
  sends->reshape({});
  callbacks->reshape({});
  for (std::uint32_t i = 3; i < 6; ++i) send(*sends, i);
  ASSERT_TRUE(run_until(io, [&] { return left.tickets.size() == 6 && right.arrived.size() == 6; }));
  EXPECT_GE(Clock::now() - begun, 20ms - 2ms);  // the first took 10 ms in the pipe and 10 ms in the link
  EXPECT_EQ(right.arrived, (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5}));
}

TEST_F(ShapedLink, Destroyed_connection_leaves_the_card_to_the_others) {
  const auto card = pipe(1e7);
  RecordingCallbacks sender, receiver;
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
