// Slices that a shard host refuses or throws away.
#include <limits>
#include <memory>
#include <utility>

#include "runtime/shard_host_for_tests.h"

namespace motley::runtime {
namespace {

TEST_F(ShardHostTest, RefusesForeignSlicesAndWrongSizes) {
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
  EXPECT_TRUE(host->receive_buffer(left, head(0, 0, own[0], 16), bytes).empty()) << "half the size";
  EXPECT_TRUE(host->receive_buffer(left, head(1, 0, own[0]), bytes).empty()) << "attached as another worker";
  EXPECT_TRUE(host->receive_buffer(left, head(2, 0, own[0]), bytes).empty()) << "not a member";
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

TEST_F(ShardHostTest, BoundsTheStepsThatWereNotOrdered) {
  make();
  host->attach({0}, left);
  std::uint64_t taken = 0;
  for (std::uint64_t step = 0; step < 1'000; ++step)
    if (push(left, head(0, step * step, own[0]), encoded(contribution(0, step), own[0], 32))) ++taken;
  EXPECT_LE(taken, 16U);
}

/// The chief is not refused for it; the pulls that remain are recent, and begin with whole values.
TEST_F(ShardHostTest, BoundsThePullsOfAWorkerThatNeverAttaches) {
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
    EXPECT_EQ(bits_of(0), 32) << "earlier pulls are lost, so it is sent the values";
    EXPECT_EQ(std::get<wire::Pulled>(right.bulk_messages.back().head).version, Version{100});
    if (bits == 32) expect_sent(right, snapshot_by_hand(0), right.bulk_messages.size() - own.size());
  }
}

TEST_F(ShardHostTest, ThrowsAwaySlicesOfEndedSteps) {
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

TEST_F(ShardHostTest, ThrowsAwaySlicesOfForgottenWorkers) {
  make();
  host->attach({0}, left);
  host->attach({1}, right);
  ASSERT_TRUE(push(left, head(0, 0, own[0]), encoded(contribution(0, 0), own[0], 32)));  // in part
  host->receive(wire::Forget{{0}});
  for (std::size_t s = 1; s < own.size(); ++s) EXPECT_TRUE(push(left, head(0, 0, own[s]), encoded(contribution(0, 0), own[s], 32)));
  EXPECT_TRUE(push(left, head(0, 1, own[0], 8), encoded(contribution(0, 1), own[0], 8)));
  EXPECT_TRUE(reported.empty());
  release(0, 5);
  host->attach({0}, left);  // a worker id is not used again
  export_now(0);
  run_ready(io);
  EXPECT_TRUE(left.bulk_messages.empty());
  push_all(right, 1, 0);
  apply(1, {{{1}, {0}, 1.0}});
  apply_by_hand({{contribution(1, 0), 1.0}});
  expect_same_values(*export_now(1));
}

/// A transport writes into a receive buffer until the slice is complete, whatever the chief sends meanwhile. Sanitizers report it if that
/// memory was freed.
TEST_F(ShardHostTest, AReceiveBufferOutlivesItsWorker) {
  for (const int bits : {32, 8}) {
    make();
    host->attach({0}, left);
    ASSERT_TRUE(push(left, head(0, 0, own[0], bits), encoded(contribution(0, 0), own[0], bits)));
    const auto payload = encoded(contribution(0, 0), own[1], bits);
    const std::span<std::byte> buffer = host->receive_buffer(left, head(0, 0, own[1], bits), payload.size());
    ASSERT_EQ(buffer.size(), payload.size());
    host->receive(wire::Forget{{0}});
    export_now(0);  // the store thread has released its references
    std::memcpy(buffer.data(), payload.data(), payload.size());
    host->received(left, head(0, 0, own[1], bits));
    EXPECT_TRUE(reported.empty());
  }
}

TEST_F(ShardHostTest, ReceiveBuffersOfForgottenWorkersAreSeparate) {
  make();
  host->receive(wire::Forget{{0}});
  host->receive(wire::Forget{{1}});
  const auto few = encoded(contribution(0, 0), own[0], 8);
  const auto many = encoded(contribution(1, 0), own[0], 32);
  const std::span<std::byte> small_buffer = host->receive_buffer(left, head(0, 0, own[0], 8), few.size());
  const std::span<std::byte> large_buffer = host->receive_buffer(right, head(1, 0, own[0]), many.size());
  ASSERT_EQ(small_buffer.size(), few.size());
  ASSERT_EQ(large_buffer.size(), many.size());
  std::memcpy(small_buffer.data(), few.data(), few.size());
  std::memcpy(large_buffer.data(), many.data(), many.size());
  host->received(left, head(0, 0, own[0], 8));
  host->received(right, head(1, 0, own[0]));
  EXPECT_TRUE(reported.empty());
}

TEST_F(ShardHostTest, AGatheredContributionOfAForgottenWorkerIsApplied) {
  make();
  host->attach({0}, left);
  push_all(left, 0, 0);
  host->receive(wire::Forget{{0}});
  apply(1, {{{0}, {0}, 1.0}});
  apply_by_hand({{contribution(0, 0), 1.0}});
  expect_same_values(*export_now(1));
}

/// A checked slice must not change: it is refused a second time, in any encoding.
TEST_F(ShardHostTest, RefusesASliceThatIsHere) {
  make();
  host->attach({0}, left);
  const auto payload = encoded(contribution(0, 0), own[0], 32);
  ASSERT_TRUE(push(left, head(0, 0, own[0]), payload));
  EXPECT_TRUE(host->receive_buffer(left, head(0, 0, own[0]), payload.size()).empty());
  EXPECT_TRUE(host->receive_buffer(left, head(0, 0, own[0], 8), encoded(contribution(0, 0), own[0], 8).size()).empty());
  EXPECT_FALSE(host->accept_in_place(left, head(0, 0, own[0]), payload, nullptr));
  EXPECT_TRUE(push(left, head(0, 1, own[0]), payload)) << "of another step it is accepted";
}

/// A contribution in the memory of its worker.
struct BorrowedContribution {
  explicit BorrowedContribution(std::vector<float> values) : flat(std::move(values)) {}
  [[nodiscard]] std::span<const std::byte> slice(const store::Slice& s) const {
    return std::as_bytes(std::span(flat).subspan(s.offset, s.count));
  }
  std::vector<float> flat;
  transport::BorrowedMemory borrow = std::make_shared<int>(0);
};

TEST_F(ShardHostTest, ReportsContributionsThatCannotBeApplied) {
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

TEST_F(ShardHostTest, ChecksBorrowedSlicesBeforeTheyCount) {
  for (const float value : {1.0F, std::numeric_limits<float>::quiet_NaN(), -1e38F}) {
    make();
    reported.clear();
    host->attach({0}, left);
    BorrowedContribution borrowed(contribution(0, 0));
    borrowed.flat[layout[own.back()].offset] = value;
    for (const SliceId id : own) ASSERT_TRUE(host->accept_in_place(left, head(0, 0, id), borrowed.slice(layout[id]), borrowed.borrow));
    EXPECT_TRUE(reported.empty());
    ASSERT_TRUE(run_until(io, [&] { return !reported.empty(); }));
    EXPECT_EQ(std::get<wire::Gathered>(reported[0]).finite, value == 1.0F) << value;
    EXPECT_GT(borrowed.borrow.use_count(), 1) << "it is summed in place";
    host->receive(wire::Discard{{0}, {0}});
    EXPECT_TRUE(run_until(io, [&] { return borrowed.borrow.use_count() == 1; }));
  }
}

/// A worker can be forgotten, and a contribution discarded, between a slice's arrival and its check.
TEST_F(ShardHostTest, DiscardingDuringACheckReleasesTheMemory) {
  for (const bool forgotten : {true, false})
    for (std::size_t kept = 1; kept <= own.size(); ++kept) {
      make();
      reported.clear();
      host->attach({0}, left);
      const BorrowedContribution borrowed(contribution(0, 0));
      for (std::size_t s = 0; s < kept; ++s)
        ASSERT_TRUE(host->accept_in_place(left, head(0, 0, own[s]), borrowed.slice(layout[own[s]]), borrowed.borrow));
      if (forgotten) host->receive(wire::Forget{{0}});
      host->receive(wire::Discard{{0}, {0}});
      export_now(0);  // the store thread has checked
      run_ready(io);
      if (!forgotten) {  // the remaining slices arrive nevertheless
        for (std::size_t i = kept; i < own.size(); ++i) EXPECT_TRUE(push(left, head(0, 0, own[i]), encoded(borrowed.flat, own[i], 32)));
      }
      EXPECT_TRUE(reported.empty());
      EXPECT_TRUE(run_until(io, [&] { return borrowed.borrow.use_count() == 1; })) << kept << " slices";
      EXPECT_TRUE(reported.empty());
    }
}

}  // namespace
}  // namespace motley::runtime
