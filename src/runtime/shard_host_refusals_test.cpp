// A shard host and those who have no right to push, or none any more.
#include <limits>
#include <memory>
#include <utility>

#include "runtime/shard_host_for_tests.h"

namespace motley::runtime {
namespace {

TEST_F(ShardHostTest, RefusesWhatIsNotItsOwnOrNotOfItsSize) {
  make();
  host->attach({0}, left);
  host->attach({1}, right);
  const std::size_t bytes = layout[own[0]].count * sizeof(float);
  EXPECT_EQ(host->receive_buffer(left, head(0, 0, own[0]), bytes).size(), bytes);
  EXPECT_TRUE(host->receive_buffer(left, head(0, 0, foreign[0]), layout[foreign[0]].count * sizeof(float)).empty());
  EXPECT_TRUE(host->receive_buffer(left, head(0, 0, SliceId{99}), bytes).empty());
  EXPECT_TRUE(host->receive_buffer(left, head(0, 0, own[0]), bytes - 1).empty());
  EXPECT_TRUE(host->receive_buffer(left, head(0, 0, own[0]), bytes + 4).empty());
  EXPECT_TRUE(host->receive_buffer(left, head(0, 0, own[0]), 0).empty());
  EXPECT_TRUE(host->receive_buffer(left, head(0, 0, own[0], 7), bytes).empty()) << "no codec of 7 bits";
  EXPECT_TRUE(host->receive_buffer(left, head(0, 0, own[0], 16), bytes).empty()) << "half the bytes";
  EXPECT_TRUE(host->receive_buffer(left, head(1, 0, own[0]), bytes).empty()) << "another's member";
  EXPECT_TRUE(host->receive_buffer(left, head(2, 0, own[0]), bytes).empty()) << "nobody's member";
  EXPECT_TRUE(reported.empty());
}

TEST_F(ShardHostTest, RefusesASliceThatIsPushedTwice) {
  for (const int bits : {32, 8}) {
    make();
    host->attach({0}, left);
    ASSERT_TRUE(push(left, head(0, 0, own[0], bits), encoded(contribution(0, 0), own[0], bits)));
    EXPECT_FALSE(push(left, head(0, 0, own[0], bits), encoded(contribution(1, 0), own[0], bits)));
    push_all(left, 0, 1, bits);
    EXPECT_FALSE(push(left, head(0, 1, own[0], bits), encoded(contribution(1, 0), own[0], bits))) << "it is gathered";
  }
}

TEST_F(ShardHostTest, KeepsABoundedNumberOfStepsThatNobodyOrdered) {
  make();
  host->attach({0}, left);
  std::uint64_t taken = 0;
  for (std::uint64_t step = 0; step < 1'000; ++step)
    if (push(left, head(0, step * step, own[0]), encoded(contribution(0, step), own[0], 32))) ++taken;
  EXPECT_LE(taken, 16U);
}

/// Its chief is not to blame for it, and goes on being heard; what is sent in the end is new and whole.
TEST_F(ShardHostTest, KeepsABoundedNumberOfPullsOfWhoNeverAttaches) {
  for (const int bits : {32, 8}) {
    make();
    left.bulk_messages.clear();
    right.bulk_messages.clear();
    host->attach({0}, left);
    for (std::uint64_t step = 0; step < 100; ++step) {
      const wire::Release release{{1}, {step}, 0, static_cast<std::uint8_t>(bits), 0, false, false};
      ASSERT_FALSE(host->objection(release)) << "step " << step;
      host->receive(release);
      push_all(left, 0, step);
      apply(step + 1, {{{0}, {step}, 1.0}});
      apply_by_hand({{contribution(0, step), 1.0}});
    }
    release(1, 100, 0, bits);
    export_now(100);
    run_ready(io);
    host->attach({1}, right);
    ASSERT_FALSE(right.bulk_messages.empty());
    EXPECT_LE(right.bulk_messages.size(), 16 * own.size());
    const auto bits_of = [&](std::size_t bulk_message) { return std::get<wire::Pulled>(right.bulk_messages[bulk_message].head).bits; };
    EXPECT_EQ(bits_of(0), 32) << "what came before it is lost: it gets the values themselves";
    EXPECT_EQ(std::get<wire::Pulled>(right.bulk_messages.back().head).version, Version{100});
    if (bits == 32) expect_sent(right, snapshot_by_hand(0), right.bulk_messages.size() - own.size());
  }
}

TEST_F(ShardHostTest, WastesSlicesOfAStepThatIsOver) {
  make();
  host->attach({0}, left);
  push_all(left, 0, 0);
  apply(1, {{{0}, {0}, 1.0}});
  reported.clear();
  for (const SliceId id : own) EXPECT_TRUE(push(left, head(0, 0, id), encoded(contribution(0, 9), id, 32)));
  EXPECT_TRUE(reported.empty()) << "it is not gathered again";
  host->receive(wire::Discard{{0}, {1}});
  for (const SliceId id : own) EXPECT_TRUE(push(left, head(0, 1, id), encoded(contribution(0, 9), id, 32)));
  push_all(left, 0, 2);
  apply(2, {{{0}, {2}, 1.0}});
  apply_by_hand({{contribution(0, 0), 1.0}});
  apply_by_hand({{contribution(0, 2), 1.0}});
  expect_same_values(*export_now(2));
}

TEST_F(ShardHostTest, WhoIsForgottenPushesIntoTheVoid) {
  make();
  host->attach({0}, left);
  host->attach({1}, right);
  ASSERT_TRUE(push(left, head(0, 0, own[0]), encoded(contribution(0, 0), own[0], 32)));  // in part
  host->receive(wire::Forget{{0}});
  for (std::size_t s = 1; s < own.size(); ++s) EXPECT_TRUE(push(left, head(0, 0, own[s]), encoded(contribution(0, 0), own[s], 32)));
  EXPECT_TRUE(push(left, head(0, 1, own[0], 8), encoded(contribution(0, 1), own[0], 8)));
  EXPECT_TRUE(reported.empty());
  release(0, 5);
  host->attach({0}, left);  // it does not come back under that name
  export_now(0);
  run_ready(io);
  EXPECT_TRUE(left.bulk_messages.empty());
  push_all(right, 1, 0);
  apply(1, {{{1}, {0}, 1.0}});
  apply_by_hand({{contribution(1, 0), 1.0}});
  expect_same_values(*export_now(1));
}

/// A transport writes into the room it was given until the slice is there, whatever the chief says meanwhile. Address and thread sanitizers
/// see it when that memory is gone.
TEST_F(ShardHostTest, RoomStaysThoughItsMemberIsForgottenMeanwhile) {
  for (const int bits : {32, 8}) {
    make();
    host->attach({0}, left);
    ASSERT_TRUE(push(left, head(0, 0, own[0], bits), encoded(contribution(0, 0), own[0], bits)));
    const auto payload = encoded(contribution(0, 0), own[1], bits);
    const std::span<std::byte> room = host->receive_buffer(left, head(0, 0, own[1], bits), payload.size());
    ASSERT_EQ(room.size(), payload.size());
    host->receive(wire::Forget{{0}});
    export_now(0);  // the store thread has let go of whatever it held
    std::memcpy(room.data(), payload.data(), payload.size());
    host->received(left, head(0, 0, own[1], bits));
    EXPECT_TRUE(reported.empty());
  }
}

TEST_F(ShardHostTest, RoomInTheVoidStaysThoughAnotherAsksForMore) {
  make();
  host->receive(wire::Forget{{0}});
  host->receive(wire::Forget{{1}});
  const auto few = encoded(contribution(0, 0), own[0], 8);
  const auto many = encoded(contribution(1, 0), own[0], 32);
  const std::span<std::byte> small_room = host->receive_buffer(left, head(0, 0, own[0], 8), few.size());
  const std::span<std::byte> large_room = host->receive_buffer(right, head(1, 0, own[0]), many.size());
  ASSERT_EQ(small_room.size(), few.size());
  ASSERT_EQ(large_room.size(), many.size());
  std::memcpy(small_room.data(), few.data(), few.size());
  std::memcpy(large_room.data(), many.data(), many.size());
  host->received(left, head(0, 0, own[0], 8));
  host->received(right, head(1, 0, own[0]));
  EXPECT_TRUE(reported.empty());
}

TEST_F(ShardHostTest, WhatAForgottenMemberHadGatheredMayStillBeApplied) {
  make();
  host->attach({0}, left);
  push_all(left, 0, 0);
  host->receive(wire::Forget{{0}});
  apply(1, {{{0}, {0}, 1.0}});
  apply_by_hand({{contribution(0, 0), 1.0}});
  expect_same_values(*export_now(1));
}

/// What was looked at must not change: no slice comes twice, in whatever form.
TEST_F(ShardHostTest, ASliceThatIsHereIsNotTakenAgain) {
  make();
  host->attach({0}, left);
  const auto payload = encoded(contribution(0, 0), own[0], 32);
  ASSERT_TRUE(push(left, head(0, 0, own[0]), payload));
  EXPECT_TRUE(host->receive_buffer(left, head(0, 0, own[0]), payload.size()).empty());
  EXPECT_TRUE(host->receive_buffer(left, head(0, 0, own[0], 8), encoded(contribution(0, 0), own[0], 8).size()).empty());
  EXPECT_FALSE(host->accept_in_place(left, head(0, 0, own[0]), payload, nullptr));
  EXPECT_TRUE(push(left, head(0, 1, own[0]), payload)) << "of another step it may";
}

/// A contribution that lies flat in its pusher's memory.
struct Lender {
  explicit Lender(std::vector<float> values) : flat(std::move(values)) {}
  [[nodiscard]] std::span<const std::byte> slice(const store::Slice& s) const {
    return std::as_bytes(std::span(flat).subspan(s.offset, s.count));
  }
  std::vector<float> flat;
  transport::BorrowedMemory borrow = std::make_shared<int>(0);
};

TEST_F(ShardHostTest, SaysOfEachContributionWhetherItsNumbersCanBeApplied) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const int bits : {32, 16, 8, 4, 2})
    for (const float value : {1.0F, nan, -std::numeric_limits<float>::infinity(), 1e38F})
      for (const SliceId bad : own) {
        make();
        reported.clear();
        host->attach({0}, left);
        std::vector<float> values = contribution(0, 0);
        values[layout[bad].offset + layout[bad].count - 1] = value;
        for (const SliceId id : own) {
          const auto own_bits = layout[id].bits(static_cast<std::uint8_t>(bits));
          ASSERT_TRUE(push(left, head(0, 0, id, bits), encoded(values, id, own_bits)));
        }
        ASSERT_EQ(reported.size(), 1U);
        EXPECT_EQ(std::get<wire::Gathered>(reported[0]).finite, value == 1.0F) << bits << " bits, " << value;
      }
}

TEST_F(ShardHostTest, LooksAtWhatIsLentBeforeItCounts) {
  for (const float value : {1.0F, std::numeric_limits<float>::quiet_NaN(), -1e38F}) {
    make();
    reported.clear();
    host->attach({0}, left);
    Lender lender(contribution(0, 0));
    lender.flat[layout[own.back()].offset] = value;
    for (const SliceId id : own) ASSERT_TRUE(host->accept_in_place(left, head(0, 0, id), lender.slice(layout[id]), lender.borrow));
    EXPECT_TRUE(reported.empty());
    ASSERT_TRUE(run_until(io, [&] { return !reported.empty(); }));
    EXPECT_EQ(std::get<wire::Gathered>(reported[0]).finite, value == 1.0F) << value;
    EXPECT_GT(lender.borrow.use_count(), 1) << "it is summed where it lies";
    host->receive(wire::Discard{{0}, {0}});
    EXPECT_TRUE(run_until(io, [&] { return lender.borrow.use_count() == 1; }));
  }
}

/// A member may go, and a contribution be dropped, between a slice and the look at it.
TEST_F(ShardHostTest, WhatIsForgottenWhileItIsLookedAtLeavesNothing) {
  for (const bool forgotten : {true, false})
    for (std::size_t kept = 1; kept <= own.size(); ++kept) {
      make();
      reported.clear();
      host->attach({0}, left);
      const Lender lender(contribution(0, 0));
      for (std::size_t s = 0; s < kept; ++s)
        ASSERT_TRUE(host->accept_in_place(left, head(0, 0, own[s]), lender.slice(layout[own[s]]), lender.borrow));
      if (forgotten) host->receive(wire::Forget{{0}});
      host->receive(wire::Discard{{0}, {0}});
      export_now(0);  // the store thread has looked
      run_ready(io);
      if (!forgotten) {  // the rest of it comes all the same
        for (std::size_t i = kept; i < own.size(); ++i) EXPECT_TRUE(push(left, head(0, 0, own[i]), encoded(lender.flat, own[i], 32)));
      }
      EXPECT_TRUE(reported.empty());
      EXPECT_TRUE(run_until(io, [&] { return lender.borrow.use_count() == 1; })) << kept << " slices";
      EXPECT_TRUE(reported.empty());
    }
}

}  // namespace
}  // namespace motley::runtime
