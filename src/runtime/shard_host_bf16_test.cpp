// A shard host with workers that compute in bf16: their pushes are summed without conversion, their pulls are rounded to bf16.
#include "runtime/shard_host_for_tests.h"

namespace motley::runtime {
namespace {

/// bf16 contributions are summed together with fp32 ones, received or borrowed.
TEST_F(ShardHostTest, SumsBf16ContributionsInPlace) {
  make();
  host->attach({0}, left);
  host->attach({1}, right);
  auto borrows = std::make_shared<int>(0);
  for (std::uint64_t step = 0; step < 5; ++step) {
    std::vector<float> flat = contribution(0, step);
    std::vector<float> stored(linear_values, 1e30F);  // the second half of a bf16 slice is unused
    for (const SliceId id : own) {
      const std::vector<std::byte> bytes = encoded(flat, id, 16);
      const std::span<float> place = std::span(flat).subspan(layout[id].offset, layout[id].count);
      ASSERT_TRUE(codec::make(16).value()->decode(bytes, place).ok());
      std::memcpy(stored.data() + layout[id].offset, bytes.data(), bytes.size());
      const auto borrowed = std::as_bytes(std::span(stored).subspan(layout[id].offset, layout[id].count)).first(bytes.size());
      // The first step borrows nothing; the third receives its last slice, and copies the borrowed ones.
      if (step == 0 || (step == 2 && id == own.back()))
        ASSERT_TRUE(push(left, head(0, step, id, 16), bytes));
      else
        ASSERT_TRUE(host->accept_in_place(left, head(0, step, id, 16), borrowed, borrows));
    }
    EXPECT_FALSE(
        host->accept_in_place(left, head(0, step, own[0], 16), std::as_bytes(std::span(flat).first(layout[own[0]].count)), borrows))
        << "as many bytes as fp32";
    ASSERT_TRUE(run_until(io, [&] { return reported.size() == 2 * step + 1; })) << "it was checked";
    push_all(right, 1, step);
    apply(step + 1, {{{0}, {step}, 0.5}, {{1}, {step}, 0.5}});
    apply_by_hand({{flat, 0.5}, {contribution(1, step), 0.5}});
    release(0, step + 1, 0.9, 32, /*bf16_transfer=*/true);
    release(1, step + 1, 0.9);
    ASSERT_TRUE(sent(left, (step + 1) * own.size()));
    ASSERT_TRUE(sent(right, (step + 1) * own.size()));
    expect_sent(left, snapshot_by_hand(0.9), step * own.size(), 16);
    expect_sent(right, snapshot_by_hand(0.9), step * own.size(), 32);
    for (std::size_t s = 0; s < own.size(); ++s) {
      EXPECT_TRUE(std::get<wire::Pulled>(left.bulk_messages[step * own.size() + s].head).rounded);
      EXPECT_FALSE(std::get<wire::Pulled>(right.bulk_messages[step * own.size() + s].head).rounded);
    }
    expect_same_values(*export_now(step + 1));
    EXPECT_EQ(borrows.use_count(), 1);
  }
}

/// Each release decides the format for its worker alone. Updates 3 and later are speculated.
TEST_F(ShardHostTest, TheTransferFormatCanChangePerRelease) {
  make();
  host->attach({0}, left);
  host->attach({1}, right);
  const auto sent_as_bf16 = [](std::uint64_t step) { return step != 5; };
  release(0, 0, 0, 32, sent_as_bf16(0));
  ASSERT_TRUE(sent(left, own.size()));
  expect_sent(left, snapshot_by_hand(0), 0, 16);
  for (std::uint64_t step = 0; step < 7; ++step) {
    push_all(left, 0, step);
    push_all(right, 1, step);
    apply(step + 1, {{{0}, {step}, 0.5}, {{1}, {step}, 0.5}});
    apply_by_hand({{contribution(0, step), 0.5}, {contribution(1, step), 0.5}});
    release(1, step + 1, 0.9);
    release(0, step + 1, 0.9, 32, sent_as_bf16(step + 1));
    ASSERT_TRUE(sent(left, (step + 2) * own.size()));
    ASSERT_TRUE(sent(right, (step + 1) * own.size()));
    expect_sent(left, snapshot_by_hand(0.9), (step + 1) * own.size(), sent_as_bf16(step + 1) ? 16 : 32);
    expect_sent(right, snapshot_by_hand(0.9), step * own.size());
  }
}

}  // namespace
}  // namespace motley::runtime
