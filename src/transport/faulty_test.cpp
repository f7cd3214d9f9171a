// Faulty connections fail at the planned byte, the same way each time.
#include "transport/faulty.h"

#include <gtest/gtest.h>

#include "transport/pairs_for_tests.h"
#include "transport/segment.h"

namespace motley::transport {
namespace {

using boost::asio::io_context;

struct Below {
  const char* name;
  Pair (*make)(io_context&, const Options&);
};
std::ostream& operator<<(std::ostream& out, const Below& below) { return out << below.name; }

class FaultyLink : public testing::TestWithParam<Below> {
 protected:
  io_context io{1};
  RecordingCallbacks left, right;
  Pair pair;
  Memory memory = pattern(1 << 20, 1);

  void start(const Faults& of_left, const Faults& of_right, std::uint64_t seed = 1) {
    pair = GetParam().make(io, {});
    pair.left = std::make_unique<Faulty>(std::move(pair.left), io.get_executor(), of_left, Rng(seed, "left"));
    pair.right = std::make_unique<Faulty>(std::move(pair.right), io.get_executor(), of_right, Rng(seed, "right"));
    pair.left->start(left);
    pair.right->start(right);
  }
  void send_slices(std::uint32_t n) {
    for (std::uint32_t i = 0; i < n; ++i) pair.left->send(BulkMessage{push_of(i), memory, 0, i});
  }
};

TEST_P(FaultyLink, Cuts_when_the_byte_is_sent) {
  start({.cut_sending_at = 3 << 20}, {});
  send_slices(8);
  ASSERT_TRUE(run_until(io, [&] { return left.ended() && right.ended(); }));
  EXPECT_NE(left.ends[0].find("as planned, by a byte sent"), std::string::npos) << left.ends[0];
  EXPECT_LE(right.arrived.size(), 4U);
}

TEST_P(FaultyLink, Cuts_within_the_slice_that_holds_the_byte) {
  start({}, {.cut_receiving_at = (3 << 20) + 5});
  send_slices(8);
  ASSERT_TRUE(run_until(io, [&] { return left.ended() && right.ended(); }));
  EXPECT_EQ(right.arrived.size(), 3U);
  EXPECT_EQ(right.slices.size(), 4U) << "a buffer was requested for the slice that never arrived";
}

TEST_P(FaultyLink, Cuts_before_the_message_with_the_byte_is_delivered) {
  start({}, {.cut_receiving_at = 50});
  for (std::uint32_t i = 0; i < 10; ++i) pair.left->send(wire::Heartbeat{.worker = {i}});  // 20 bytes each
  ASSERT_TRUE(run_until(io, [&] { return left.ended() && right.ended(); }));
  EXPECT_EQ(right.messages.size(), 2U);
}

TEST_P(FaultyLink, Stalls_without_an_error) {
  start({.stall_sending_at = 2 << 20}, {});
  send_slices(8);
  ASSERT_TRUE(run_until(io, [&] { return right.arrived.size() == 2; }));
  pair.right->send(wire::Stop{});
  ASSERT_TRUE(run_until(io, [&] { return left.messages.size() == 1; }));
  run_ready(io);
  EXPECT_EQ(right.arrived.size(), 2U);
  EXPECT_FALSE(left.ended() || right.ended());
}

TEST_P(FaultyLink, Delays_keep_the_order) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    start({.longest_delay = std::chrono::microseconds(200)}, {}, seed);
    right.messages.clear();
    for (std::uint32_t i = 0; i < 50; ++i) pair.left->send(wire::Heartbeat{.worker = {i}});
    ASSERT_TRUE(run_until(io, [&] { return right.messages.size() == 50; }));
    for (std::uint32_t i = 0; i < 50; ++i) ASSERT_EQ(std::get<wire::Heartbeat>(right.messages[i]).worker.value, i);
  }
}

std::vector<Below> every_below() {
  std::vector<Below> all{{"loopback", loopback_pair}, {"tcp", tcp_pair}};
  if (has_segments()) all.push_back({"shared", shared_pair});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Over, FaultyLink, testing::ValuesIn(every_below()),
                         [](const auto& below) { return std::string(below.param.name); });

}  // namespace
}  // namespace motley::transport
