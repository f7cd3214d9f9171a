// Payloads in the shared arena are read in place by a peer of this host, and their memory is returned afterwards.
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "transport/pairs_for_tests.h"
#include "transport/shared_arena.h"
#include "transport/stream_connection.h"

namespace motley::transport {
namespace {

/// Accepts payloads in place, unless told not to.
class Borrower : public RecordingCallbacks {
 public:
  bool accept_in_place(Connection&, const wire::Message& head, std::span<const std::byte> payload, const BorrowedMemory& borrow) override {
    if (!keeps) return false;
    kept[slice_of(head)] = {payload, borrow};
    return true;
  }
  struct Kept {
    std::span<const std::byte> payload;
    BorrowedMemory borrow;
  };
  bool keeps = true;
  std::map<std::uint32_t, Kept> kept;
};

class Borrowing : public testing::Test {
 protected:
  static constexpr std::size_t bytes = 100'000;

  void SetUp() override {
    if (!has_segments()) GTEST_SKIP() << "this kernel has no sealed memory";
    pair = socket_pair(io, fresh_socket(), with({}, Bulk::shared));
    pair.left->start(owner);
    pair.right->start(borrower);
    memory = static_cast<std::byte*>(shared_arena().take(bytes));
    ASSERT_NE(memory, nullptr);
    const Memory content = pattern(bytes, 5);
    std::copy(content.begin(), content.end(), memory);
  }
  void TearDown() override {
    if (memory != nullptr) shared_arena().give(memory);
  }
  void may_borrow(std::uint32_t slice, std::size_t first, std::size_t count) {
    pair.left->send(BulkMessage{push_of(slice), {memory + first, count}, 0, slice, /*may_borrow=*/true});
  }

  boost::asio::io_context io{1};
  RecordingCallbacks owner;
  Borrower borrower;
  Pair pair;
  std::byte* memory = nullptr;
};

TEST_F(Borrowing, Payload_is_read_in_place_until_it_is_returned) {
  may_borrow(1, 0, 60'000);
  may_borrow(2, 60'000, 40'000);
  ASSERT_TRUE(run_until(io, [&] { return borrower.kept.size() == 2; }));
  EXPECT_TRUE(std::equal(memory + 60'000, memory + bytes, borrower.kept[2].payload.begin()));
  EXPECT_EQ(borrower.kept[1].payload.data() + 60'000, borrower.kept[2].payload.data()) << "adjacent payloads stay adjacent";
  memory[3] = std::byte{77};
  EXPECT_EQ(borrower.kept[1].payload[3], std::byte{77}) << "it was copied";
  run_ready(io);
  EXPECT_TRUE(owner.tickets.empty());
  std::thread([&] { borrower.kept.erase(2); }).join();  // from another thread than the one that accepted it
  ASSERT_TRUE(run_until(io, [&] { return owner.tickets.size() == 1; }));
  EXPECT_EQ(owner.tickets[0], 2U);
  borrower.kept.clear();
  ASSERT_TRUE(run_until(io, [&] { return owner.tickets.size() == 2; }));
}

TEST_F(Borrowing, Payload_is_copied_when_not_accepted_in_place) {
  borrower.keeps = false;
  may_borrow(1, 500, 1'000);
  ASSERT_TRUE(run_until(io, [&] { return owner.tickets.size() == 1; }));
  EXPECT_TRUE(std::equal(memory + 500, memory + 1'500, borrower.slices.at(1).begin(), borrower.slices.at(1).end()));
}

TEST_F(Borrowing, Only_payloads_that_may_be_borrowed_are) {
  const Memory elsewhere = pattern(1'000, 9);
  pair.left->send(BulkMessage{push_of(1), elsewhere, 0, 1, /*may_borrow=*/true});
  pair.left->send(BulkMessage{push_of(2), {memory, 1'000}, 0, 2, /*may_borrow=*/false});
  ASSERT_TRUE(run_until(io, [&] { return borrower.arrived.size() == 2; }));
  EXPECT_TRUE(borrower.kept.empty());
  EXPECT_TRUE(borrower.slices.at(1) == elsewhere);
}

TEST_F(Borrowing, Borrowed_payloads_need_no_window) {
  Options small;
  small.window_bytes = 1'000;
  small.bulk = Bulk::shared;
  RecordingCallbacks from;
  Borrower to;
  Pair narrow = socket_pair(io, fresh_socket(), small);
  narrow.left->start(from);
  narrow.right->start(to);
  narrow.right->hold();
  for (std::uint32_t i = 0; i < 100; ++i) narrow.left->send(BulkMessage{push_of(i), {memory + std::size_t{i} * 1'000, 1'000}, 0, i, true});
  EXPECT_TRUE(run_until(io, [&] { return to.kept.size() == 100; })) << "nothing was granted back";
  EXPECT_TRUE(from.tickets.empty()) << "all payloads are still kept";
}

TEST_F(Borrowing, Memory_borrowed_by_a_lost_peer_is_never_reused) {
  may_borrow(1, 0, bytes);
  ASSERT_TRUE(run_until(io, [&] { return borrower.kept.size() == 1; }));
  EXPECT_FALSE(shared_arena().spoiled(memory));
  pair.left->abandon("by the owner of the memory");
  ASSERT_TRUE(run_until(io, [&] { return borrower.ended() && owner.ended(); }));
  EXPECT_TRUE(shared_arena().spoiled(memory));
  shared_arena().give(memory);
  memory = nullptr;
  EXPECT_TRUE(borrower.kept[1].payload.size() == bytes &&
              std::equal(borrower.kept[1].payload.begin(), borrower.kept[1].payload.end(), pattern(bytes, 5).begin()));
  pair.right.reset();
  borrower.kept.clear();  // after its connection has ended
  EXPECT_TRUE(owner.tickets.empty());
}

TEST_F(Borrowing, Returned_memory_is_reused_after_the_connection_ends) {
  may_borrow(1, 0, bytes);
  ASSERT_TRUE(run_until(io, [&] { return borrower.kept.size() == 1; }));
  borrower.kept.clear();
  ASSERT_TRUE(run_until(io, [&] { return owner.tickets.size() == 1; }));
  pair.left.reset();
  EXPECT_FALSE(shared_arena().spoiled(memory));
}

TEST_F(Borrowing, New_segment_is_offered_after_one_was_released) {
  for (std::uint32_t i = 0; i < 5; ++i) {
    may_borrow(i, 0, 1'000);
    ASSERT_TRUE(run_until(io, [&] { return borrower.kept.size() == 1; }));
    borrower.kept.clear();
    ASSERT_TRUE(run_until(io, [&] { return owner.tickets.size() == i + 1; }));
    shared_arena().give(memory);
    memory = static_cast<std::byte*>(shared_arena().take(bytes));
  }
}

TEST(SharedArena, Finds_memory_within_one_block_only) {
  if (!has_segments()) GTEST_SKIP() << "this kernel has no sealed memory";
  SharedArena memory;
  EXPECT_EQ(memory.take(5'000), nullptr) << "want() was not called";
  memory.want();
  auto* first = static_cast<std::byte*>(memory.take(5'000));
  auto* second = static_cast<std::byte*>(memory.take(5'000));
  ASSERT_TRUE(first != nullptr && second != nullptr);
  EXPECT_EQ(memory.find({first + 10, 4'990})->offset, 10U);
  EXPECT_NE(memory.find({first, 1})->segment, memory.find({second, 1})->segment);
  EXPECT_FALSE(memory.find({first + 10, 4'991}).has_value());
  EXPECT_EQ(memory.key(memory.find({second, 1})->segment)->size, 5'000U);
  const std::uint32_t segment = memory.find({first, 1})->segment;
  memory.give(first);
  EXPECT_FALSE(memory.owns(first));
  EXPECT_FALSE(memory.key(segment).has_value());
  EXPECT_EQ(memory.released(), 1U);
  memory.give(second);
}

}  // namespace
}  // namespace motley::transport
