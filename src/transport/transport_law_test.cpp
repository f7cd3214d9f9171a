// One test suite for every transport: messages in order and complete, payloads byte for byte in their buffers, urgent slices first, each
// ticket once, one closed() on both sides as the last callback.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <ostream>

#include "transport/pairs_for_tests.h"
#include "transport/segment.h"

namespace motley::transport {
namespace {

using boost::asio::io_context;
constexpr std::size_t slice_bytes = 1 << 20;

struct Kind {
  std::string name;
  Pair (*make)(io_context&, const Options&);
};
std::ostream& operator<<(std::ostream& out, const Kind& kind) { return out << kind.name; }

class TransportLaw : public testing::TestWithParam<Kind> {
 protected:
  io_context io{1};
  Options options;
  RecordingCallbacks left_callbacks, right_callbacks;
  Pair pair;

  void make() { pair = GetParam().make(io, options); }
  void start() {
    make();
    pair.left->start(left_callbacks);
    pair.right->start(right_callbacks);
  }
  void TearDown() override {
    EXPECT_LE(left_callbacks.ends.size(), 1U) << "closed() is called once";
    EXPECT_LE(right_callbacks.ends.size(), 1U) << "closed() is called once";
    EXPECT_FALSE(left_callbacks.called_after_closed || right_callbacks.called_after_closed) << "closed() is the last callback";
    EXPECT_FALSE(left_callbacks.two_buffers_at_once || right_callbacks.two_buffers_at_once) << "slices arrive one at a time";
  }
  testing::AssertionResult until(const std::function<bool()>& done) { return run_until(io, done); }

  /// Sends slices 0..n-1 from memory that stays valid, tickets 1000, 1001, ...
  void send_slices(Connection& from, std::uint32_t n, std::size_t bytes, std::uint32_t priority = 5, std::uint32_t first = 0) {
    for (std::uint32_t i = first; i < first + n; ++i) {
      memory.push_back(pattern(bytes, i));
      from.send(BulkMessage{push_of(i), memory.back(), priority, 1000 + i});
    }
  }
  std::deque<Memory> memory;

  static void expect_slices(const RecordingCallbacks& callbacks, std::uint32_t n, std::size_t bytes) {
    for (std::uint32_t i = 0; i < n; ++i) ASSERT_TRUE(callbacks.slices.at(i) == pattern(bytes, i)) << "slice " << i;
  }
};

wire::Heartbeat numbered(std::uint32_t n) { return {.worker = {n}}; }

// messages -------------------------------------------------------------------------------------------------------------------------

TEST_P(TransportLaw, Messages_arrive_in_order_and_complete) {
  start();
  constexpr std::uint32_t n = 5'000;
  for (std::uint32_t i = 0; i < n; ++i) {
    pair.left->send(numbered(i));
    pair.right->send(wire::Hello{.node = std::string(i % 100, 'x'), .attempt = i});
  }
  ASSERT_TRUE(until([&] { return right_callbacks.messages.size() == n && left_callbacks.messages.size() == n; }));
  for (std::uint32_t i = 0; i < n; ++i) {
    ASSERT_EQ(std::get<wire::Heartbeat>(right_callbacks.messages[i]).worker.value, i);
    ASSERT_EQ(std::get<wire::Hello>(left_callbacks.messages[i]).attempt, i);
    ASSERT_EQ(std::get<wire::Hello>(left_callbacks.messages[i]).node, std::string(i % 100, 'x'));
  }
}

TEST_P(TransportLaw, Large_message_arrives_complete) {
  start();
  wire::Apply apply;
  for (std::uint32_t i = 0; i < 10'000; ++i) apply.parts.push_back({.worker = {i}, .step = {i}, .weight = 0.5});
  pair.left->send(apply);
  ASSERT_TRUE(until([&] { return right_callbacks.messages.size() == 1; }));
  EXPECT_EQ(std::get<wire::Apply>(right_callbacks.messages[0]).parts.size(), 10'000U);
  EXPECT_EQ(std::get<wire::Apply>(right_callbacks.messages[0]).parts.back().worker.value, 9'999U);
}

TEST_P(TransportLaw, Messages_sent_before_start_arrive_after_it) {
  make();
  pair.left->send(numbered(1));
  send_slices(*pair.left, 1, 100);
  run_ready(io);
  pair.right->start(right_callbacks);
  pair.left->start(left_callbacks);
  ASSERT_TRUE(until([&] { return right_callbacks.messages.size() == 1 && right_callbacks.arrived.size() == 1; }));
}

TEST_P(TransportLaw, Messages_do_not_wait_for_slices) {
  start();
  send_slices(*pair.left, 64, slice_bytes);
  pair.left->send(numbered(7));
  ASSERT_TRUE(until([&] { return right_callbacks.messages.size() == 1; }));
  EXPECT_LT(right_callbacks.arrived.size(), 16U);
}

// slices ---------------------------------------------------------------------------------------------------------------------------

TEST_P(TransportLaw, Payload_arrives_in_its_buffer) {
  start();
  send_slices(*pair.left, 3, slice_bytes + 17);
  ASSERT_TRUE(until([&] { return right_callbacks.arrived.size() == 3; }));
  expect_slices(right_callbacks, 3, slice_bytes + 17);
}

TEST_P(TransportLaw, Payloads_of_every_size_arrive) {
  start();
  std::vector<std::size_t> sizes = {1, 2, 100, 4'095, 16'383, 16'384, 16'385, 65'536, 100'000, 3 << 20, 9 << 20, 1};
  for (std::uint32_t i = 0; i < sizes.size(); ++i) send_slices(*pair.left, 1, sizes[i], 5, i);
  ASSERT_TRUE(until([&] { return right_callbacks.arrived.size() == sizes.size() && left_callbacks.tickets.size() == sizes.size(); }));
  for (std::uint32_t i = 0; i < sizes.size(); ++i)
    EXPECT_TRUE(right_callbacks.slices.at(i) == pattern(sizes[i], i)) << sizes[i] << " bytes";
}

TEST_P(TransportLaw, Many_small_slices_arrive_in_order) {
  start();
  constexpr std::uint32_t n = 10'000;
  send_slices(*pair.left, n, 40);
  ASSERT_TRUE(until([&] { return right_callbacks.arrived.size() == n; }));
  std::vector<std::uint32_t> in_order(n);
  std::iota(in_order.begin(), in_order.end(), 0U);
  EXPECT_EQ(right_callbacks.arrived, in_order);
  expect_slices(right_callbacks, n, 40);
}

TEST_P(TransportLaw, Large_transfers_in_both_directions_arrive) {
  start();
  constexpr std::uint32_t n = 32;
  send_slices(*pair.left, n, slice_bytes);
  send_slices(*pair.right, n, slice_bytes);
  ASSERT_TRUE(until([&] { return right_callbacks.arrived.size() == n && left_callbacks.arrived.size() == n; }));
  expect_slices(right_callbacks, n, slice_bytes);
  expect_slices(left_callbacks, n, slice_bytes);
}

TEST_P(TransportLaw, Each_ticket_is_sent_once) {
  start();
  constexpr std::uint32_t n = 100;
  send_slices(*pair.left, n, 50'000);
  ASSERT_TRUE(until([&] { return left_callbacks.tickets.size() >= n && right_callbacks.arrived.size() == n; }));
  run_ready(io);
  std::sort(left_callbacks.tickets.begin(), left_callbacks.tickets.end());
  std::vector<std::uint64_t> each_once(n);
  std::iota(each_once.begin(), each_once.end(), 1000U);
  EXPECT_EQ(left_callbacks.tickets, each_once);
  EXPECT_EQ(pair.left->queued().bulk_bytes, 0U);
  EXPECT_EQ(pair.left->queued().control_bytes, 0U);
}

TEST_P(TransportLaw, Memory_may_be_reused_once_sent) {
  start();
  send_slices(*pair.left, 1, slice_bytes);
  ASSERT_TRUE(until([&] { return left_callbacks.tickets.size() == 1; }));
  std::fill(memory[0].begin(), memory[0].end(), std::byte{0});
  ASSERT_TRUE(until([&] { return right_callbacks.arrived.size() == 1; }));
  expect_slices(right_callbacks, 1, slice_bytes);
}

// priorities -----------------------------------------------------------------------------------------------------------------------

TEST_P(TransportLaw, Urgent_slice_behind_64_MiB_goes_within_two_slices) {
  start();
  send_slices(*pair.left, 64, slice_bytes);
  ASSERT_TRUE(until([&] { return left_callbacks.tickets.size() >= 8; }));
  const std::size_t gone = left_callbacks.tickets.size();
  send_slices(*pair.left, 1, 1'000, 0, 999);
  ASSERT_TRUE(until([&] { return left_callbacks.tickets.size() == 65; }));
  const auto urgent = std::find(left_callbacks.tickets.begin(), left_callbacks.tickets.end(), 1'999U) - left_callbacks.tickets.begin();
  EXPECT_LE(static_cast<std::size_t>(urgent), gone + 2);
  ASSERT_TRUE(until([&] { return right_callbacks.arrived.size() == 65; }));
}

TEST_P(TransportLaw, Slices_of_one_turn_go_in_the_order_of_priority) {
  start();
  run_ready(io);
  for (std::uint32_t i = 0; i < 10; ++i) send_slices(*pair.left, 1, slice_bytes, 10 - i, i);
  ASSERT_TRUE(until([&] { return right_callbacks.arrived.size() == 10; }));
  EXPECT_EQ(right_callbacks.arrived, (std::vector<std::uint32_t>{9, 8, 7, 6, 5, 4, 3, 2, 1, 0}));
}

TEST_P(TransportLaw, Waiting_slice_is_not_overtaken_for_ever) {
  options.overtakes = 3;
  start();
  send_slices(*pair.left, 1, slice_bytes, 9, 0);
  send_slices(*pair.left, 20, slice_bytes, 0, 1);
  ASSERT_TRUE(until([&] { return right_callbacks.arrived.size() == 21; }));
  EXPECT_LE(std::find(right_callbacks.arrived.begin(), right_callbacks.arrived.end(), 0U) - right_callbacks.arrived.begin(), 3);
}

// credits --------------------------------------------------------------------------------------------------------------------------

TEST_P(TransportLaw, Holding_receiver_stops_the_sender_at_the_window) {
  options.window_bytes = 3 * slice_bytes;
  start();
  right_callbacks.when_received = [](Connection& connection, const wire::Message&) { connection.hold(); };
  send_slices(*pair.left, 10, slice_bytes);
  ASSERT_TRUE(until([&] { return right_callbacks.arrived.size() == 3; }));
  pair.left->send(numbered(1));  // one round trip of the control lane later, still no slice moves
  ASSERT_TRUE(until([&] { return !right_callbacks.messages.empty(); }));
  pair.right->send(numbered(2));
  ASSERT_TRUE(until([&] { return !left_callbacks.messages.empty(); }));
  run_ready(io);
  EXPECT_EQ(right_callbacks.arrived.size(), 3U);

  right_callbacks.when_received = [](Connection&, const wire::Message&) {};
  pair.right->resume();
  ASSERT_TRUE(until([&] { return right_callbacks.arrived.size() == 10; }));
  expect_slices(right_callbacks, 10, slice_bytes);
}

TEST_P(TransportLaw, Slices_that_wait_for_credit_can_be_overtaken) {
  options.window_bytes = 2 * slice_bytes;
  start();
  pair.right->hold();
  send_slices(*pair.left, 10, slice_bytes);
  ASSERT_TRUE(until([&] { return right_callbacks.arrived.size() == 2; }));
  run_ready(io);
  const std::size_t before = left_callbacks.tickets.size();
  send_slices(*pair.left, 1, 1'000, 0, 99);
  pair.right->resume();
  ASSERT_TRUE(until([&] { return right_callbacks.arrived.size() == 11; }));
  const auto urgent = std::find(left_callbacks.tickets.begin(), left_callbacks.tickets.end(), 1'099U) - left_callbacks.tickets.begin();
  EXPECT_LE(static_cast<std::size_t>(urgent), before + 2);
}

TEST_P(TransportLaw, Slice_larger_than_the_window_arrives) {
  options.window_bytes = 1'000;
  start();
  send_slices(*pair.left, 5, 100'000);
  ASSERT_TRUE(until([&] { return right_callbacks.arrived.size() == 5; }));
  expect_slices(right_callbacks, 5, 100'000);
}

// ending ---------------------------------------------------------------------------------------------------------------------------

TEST_P(TransportLaw, Closing_reaches_both_sides_with_its_reason) {
  start();
  pair.left->close("the job is done");
  ASSERT_TRUE(until([&] { return left_callbacks.ended() && right_callbacks.ended(); }));
  EXPECT_EQ(left_callbacks.ends[0], "the job is done");
  EXPECT_NE(right_callbacks.ends[0].find("the job is done"), std::string::npos) << right_callbacks.ends[0];
}

TEST_P(TransportLaw, Accepting_side_may_close) {
  start();
  pair.right->close("enough");
  ASSERT_TRUE(until([&] { return left_callbacks.ended() && right_callbacks.ended(); }));
  EXPECT_NE(left_callbacks.ends[0].find("enough"), std::string::npos) << left_callbacks.ends[0];
}

TEST_P(TransportLaw, Messages_sent_before_closing_arrive) {
  start();
  for (std::uint32_t i = 0; i < 1'000; ++i) pair.left->send(numbered(i));
  pair.left->close("the job is done");
  pair.left->send(numbered(1'000));
  ASSERT_TRUE(until([&] { return left_callbacks.ended() && right_callbacks.ended(); }));
  EXPECT_EQ(right_callbacks.messages.size(), 1'000U);
}

TEST_P(TransportLaw, Closing_during_a_transfer_ends_both_sides) {
  start();
  send_slices(*pair.left, 32, slice_bytes);
  ASSERT_TRUE(until([&] { return right_callbacks.arrived.size() >= 4; }));  // several may arrive at once
  pair.left->close("closed by the test");
  ASSERT_TRUE(until([&] { return left_callbacks.ended() && right_callbacks.ended(); }));
  EXPECT_LT(right_callbacks.arrived.size(), 32U);
}

TEST_P(TransportLaw, Both_sides_may_close_at_once) {
  start();
  pair.left->close("left");
  pair.right->close("right");
  ASSERT_TRUE(until([&] { return left_callbacks.ended() && right_callbacks.ended(); }));
  EXPECT_EQ(left_callbacks.ends[0], "left");
  EXPECT_EQ(right_callbacks.ends[0], "right");
}

TEST_P(TransportLaw, Peer_notices_an_abandoned_connection) {
  start();
  pair.left->abandon("abandoned by the test");
  ASSERT_TRUE(until([&] { return left_callbacks.ended() && right_callbacks.ended(); }));
  EXPECT_EQ(left_callbacks.ends[0], "abandoned by the test");
}

TEST_P(TransportLaw, Peer_notices_a_destroyed_connection) {
  start();
  send_slices(*pair.left, 8, slice_bytes);
  ASSERT_TRUE(until([&] { return !right_callbacks.arrived.empty(); }));
  pair.left.reset();
  ASSERT_TRUE(until([&] { return right_callbacks.ended(); }));
  EXPECT_FALSE(left_callbacks.ended());
}

TEST_P(TransportLaw, Late_start_still_receives_closed) {
  make();
  pair.left->start(left_callbacks);
  pair.left->abandon("gone");
  ASSERT_TRUE(until([&] { return left_callbacks.ended(); }));
  run_ready(io);
  pair.right->start(right_callbacks);
  ASSERT_TRUE(until([&] { return right_callbacks.ended(); }));
}

TEST_P(TransportLaw, Connection_may_be_destroyed_from_any_callback) {
  for (const std::string moment : {"message", "buffer", "received", "sent", "closed"}) {
    SCOPED_TRACE(moment);
    RecordingCallbacks left, right;
    Pair both = GetParam().make(io, options);
    both.left->start(left);
    both.right->start(right);
    auto& victim = moment == "sent" ? both.left : both.right;
    const RecordingCallbacks& survivor = moment == "sent" ? right : left;
    if (moment == "message") right.when_message = [&](Connection&) { victim.reset(); };
    if (moment == "buffer") right.buffer_size_for = [&](std::size_t bytes) { return victim.reset(), bytes; };
    if (moment == "received") right.when_received = [&](Connection&, const wire::Message&) { victim.reset(); };
    if (moment == "sent") left.when_sent = [&] { victim.reset(); };
    if (moment == "closed") right.when_closed = [&](Connection&) { victim.reset(); };
    if (moment == "closed") both.left->close("done");
    both.left->send(numbered(1));
    send_slices(*both.left, 3, slice_bytes);
    ASSERT_TRUE(until([&] { return victim == nullptr && survivor.ended(); }));
    run_ready(io);
  }
}

TEST_P(TransportLaw, Refused_or_empty_slice_closes_both_sides) {
  for (const auto& [bytes, buffer_bytes] :
       std::initializer_list<std::pair<std::size_t, std::size_t>>{{100, 0}, {100, 99}, {100, 101}, {0, 0}}) {
    RecordingCallbacks left, right;
    Pair both = GetParam().make(io, options);
    both.left->start(left);
    both.right->start(right);
    right.buffer_size_for = [buffer_bytes = buffer_bytes](std::size_t) { return buffer_bytes; };
    send_slices(*both.left, 1, bytes);
    ASSERT_TRUE(until([&] { return left.ended() && right.ended(); }));
    EXPECT_TRUE(bytes == 0 || right.ends[0].find("was refused") != std::string::npos) << right.ends[0];
    EXPECT_TRUE(bytes == 0 || left.ends[0].find("was refused") != std::string::npos) << left.ends[0];
    EXPECT_TRUE(right.arrived.empty());
  }
}

// bounds ---------------------------------------------------------------------------------------------------------------------------

TEST_P(TransportLaw, Full_control_queue_ends_the_connection) {
  options.control_queue_bytes = 1 << 20;
  make();
  pair.left->start(left_callbacks);  // the right side never reads
  for (int i = 0; i < 20'000 && !left_callbacks.ended(); ++i) {
    pair.left->send(wire::Hello{.node = std::string(1'000, 'x'), .attempt = 0});
    run_ready(io);
  }
  ASSERT_TRUE(until([&] { return left_callbacks.ended(); }));
  EXPECT_NE(left_callbacks.ends[0].find("control queue full"), std::string::npos) << left_callbacks.ends[0];
}

TEST_P(TransportLaw, Full_bulk_queue_ends_the_connection) {
  options.bulk_messages = 100;
  start();
  send_slices(*pair.left, 101, 10);
  ASSERT_TRUE(until([&] { return left_callbacks.ended() && right_callbacks.ended(); }));
  EXPECT_NE(left_callbacks.ends[0].find("bulk queue full"), std::string::npos) << left_callbacks.ends[0];
}

std::vector<Kind> every_kind() {
  std::vector<Kind> kinds{
      {"tcp", tcp_pair},
      {"unix", unix_pair},
      {"loopback", loopback_pair},
      {"shaped_loopback", [](io_context& io, const Options& o) { return shaped(io, loopback_pair(io, o), o); }},
      {"shaped_tcp", [](io_context& io, const Options& o) { return shaped(io, tcp_pair(io, o), o); }},
      {"unshaped_loopback", [](io_context& io, const Options& o) { return unshaped(io, loopback_pair(io, o), o); }},
      {"unshaped_tcp", [](io_context& io, const Options& o) { return unshaped(io, tcp_pair(io, o), o); }},
      {"passages_loopback", [](io_context& io, const Options& o) { return through_shared_links(io, loopback_pair(io, o), o); }},
      {"passages_tcp", [](io_context& io, const Options& o) { return through_shared_links(io, tcp_pair(io, o), o); }},
      {"faultless_loopback", [](io_context& io, const Options& o) { return faultless(io, loopback_pair(io, o)); }},
      {"faultless_tcp", [](io_context& io, const Options& o) { return faultless(io, tcp_pair(io, o)); }}};
  if (!has_segments()) return kinds;
  kinds.push_back({"shared", shared_pair});
  kinds.push_back({"shaped_shared", [](io_context& io, const Options& o) { return shaped(io, shared_pair(io, o), o); }});
  kinds.push_back({"passages_shared", [](io_context& io, const Options& o) { return through_shared_links(io, shared_pair(io, o), o); }});
  kinds.push_back({"faultless_shared", [](io_context& io, const Options& o) { return faultless(io, shared_pair(io, o)); }});
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(Every, TransportLaw, testing::ValuesIn(every_kind()), [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace motley::transport
