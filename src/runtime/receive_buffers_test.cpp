// Receive buffers, the check of borrowed values, and the decoding of slices.
#include "runtime/receive_buffers.h"

#include <cstring>
#include <limits>

#include "base/check.h"
#include "runtime/store_thread_for_tests.h"

namespace motley::runtime {
namespace {

constexpr WorkerId ann{0};
constexpr WorkerId bob{1};

class ReceiveBuffersTest : public StoreThreadFixture {
 protected:
  static wire::Push push_of(WorkerId worker, std::uint64_t step, SliceId slice, std::uint8_t bits = 32) {
    return {.worker = worker, .step = {step}, .slice = slice, .bits = bits};
  }
  [[nodiscard]] std::vector<std::byte> encoded(SliceId id, std::uint8_t bits) const {
    std::vector<std::byte> bytes;
    codec::make(layout[id].bits(bits)).value()->encode(std::span(values).subspan(layout[id].offset, layout[id].count), bytes);
    return bytes;
  }
  bool receive(const wire::Push& push, bool discard = false) {
    const std::vector<std::byte> bytes = encoded(push.slice, push.bits);
    const std::span<std::byte> buffer = buffers.receive_buffer(connection, push, bytes.size(), discard);
    if (buffer.size() != bytes.size()) return false;
    std::memcpy(buffer.data(), bytes.data(), bytes.size());
    return buffers.received(connection, push, discard);
  }
  bool push_in_place(const wire::Push& push, const std::shared_ptr<int>& borrow) {
    const store::Slice& slice = layout[push.slice];
    return buffers.accept_in_place(push, std::as_bytes(std::span(values).subspan(slice.offset, slice.count)), borrow);
  }
  void expect_values(const ContributionKey& key, SliceId id, float tolerance = 0) const {
    const Contribution* found = buffers.find(key);
    ASSERT_NE(found, nullptr);
    for (std::uint64_t i = layout[id].offset; i < layout[id].offset + layout[id].count; ++i)
      EXPECT_NEAR(std::as_const(*found->flat).floats()[i], values[i], tolerance) << "value " << i;
  }

  FakeConnection connection;
  std::vector<float> values = linear_start();
  std::vector<SliceId> checked;
  ReceiveBuffers buffers{layout, server, *thread, [this](const wire::Push& push) { checked.push_back(push.slice); }};
};

TEST_F(ReceiveBuffersTest, StoresSlicesInTheBufferThatIsSummed) {
  for (const SliceId id : own) {
    ASSERT_TRUE(receive(push_of(ann, 1, id)));
    expect_values({ann, Step{1}}, id);
  }
  EXPECT_TRUE(buffers.finite({ann, Step{1}}));
  EXPECT_EQ(buffers.find({ann, Step{2}}), nullptr);
  EXPECT_EQ(buffers.find({bob, Step{1}}), nullptr);
  std::size_t bytes = 0;
  for (const SliceId id : own) bytes += layout[id].count * sizeof(float);
  EXPECT_EQ(buffers.bytes_received(), bytes);
}

TEST_F(ReceiveBuffersTest, DecodesSlicesBeforeLaterWork) {
  Gate gate;
  block(gate);
  for (const SliceId id : own) ASSERT_TRUE(receive(push_of(ann, 1, id, 8)));
  buffers.flush_decoding();
  gate.open();
  finish_work();
  for (const SliceId id : own) expect_values({ann, Step{1}}, id, 0.01F);
}

TEST_F(ReceiveBuffersTest, RefusesWrongSizesCodecsAndRepeatedSlices) {
  const std::size_t bytes = layout[own[0]].count * sizeof(float);
  EXPECT_TRUE(buffers.receive_buffer(connection, push_of(ann, 1, own[0]), bytes - 1, false).empty());
  EXPECT_TRUE(buffers.receive_buffer(connection, push_of(ann, 1, own[0], 7), bytes, false).empty());
  ASSERT_TRUE(receive(push_of(ann, 1, own[0])));
  EXPECT_FALSE(receive(push_of(ann, 1, own[0])));
  EXPECT_FALSE(push_in_place(push_of(ann, 1, own[0]), nullptr));
}

TEST_F(ReceiveBuffersTest, ThrowsAwaySlicesOfStepsThatAreOver) {
  EXPECT_FALSE(receive(push_of(ann, 1, own[0]), /*discard=*/true));
  EXPECT_EQ(buffers.find({ann, Step{1}}), nullptr);
  EXPECT_EQ(buffers.bytes_received(), 0U);
}

TEST_F(ReceiveBuffersTest, ReportsValuesThatCannotBeApplied) {
  values[layout[own[1]].offset] = std::numeric_limits<float>::quiet_NaN();
  ASSERT_TRUE(receive(push_of(ann, 1, own[0])));
  EXPECT_TRUE(buffers.finite({ann, Step{1}}));
  ASSERT_TRUE(receive(push_of(ann, 1, own[1])));
  EXPECT_FALSE(buffers.finite({ann, Step{1}}));
}

TEST_F(ReceiveBuffersTest, ReadsBorrowedSlicesWhereTheyAre) {
  const auto borrow = std::make_shared<int>(0);
  for (const SliceId id : own) ASSERT_TRUE(push_in_place(push_of(ann, 1, id), borrow));
  EXPECT_TRUE(checked.empty()) << "slices count once they are checked";
  ASSERT_TRUE(transport::run_until(io, [&] { return checked.size() == own.size(); }));
  EXPECT_EQ(checked, own);
  EXPECT_EQ(std::as_const(*buffers.find({ann, Step{1}})->flat).floats().data(), values.data());
  buffers.erase({ann, Step{1}});
  finish_work();  // the store thread has released its copies
  EXPECT_EQ(borrow.use_count(), 1);
}

TEST_F(ReceiveBuffersTest, ChecksBorrowedValues) {
  values[layout[own[1]].offset + 1] = -1e38F;
  for (const SliceId id : own) ASSERT_TRUE(push_in_place(push_of(ann, 1, id), nullptr));
  ASSERT_TRUE(transport::run_until(io, [&] { return checked.size() == own.size(); }));
  EXPECT_FALSE(buffers.finite({ann, Step{1}}));
}

TEST_F(ReceiveBuffersTest, CopiesBorrowedSlicesWhenAnotherIsReceived) {
  const auto borrow = std::make_shared<int>(0);
  ASSERT_TRUE(push_in_place(push_of(ann, 1, own[0]), borrow));
  ASSERT_TRUE(transport::run_until(io, [&] { return checked.size() == 1; }));
  ASSERT_TRUE(receive(push_of(ann, 1, own[1])));
  finish_work();  // the store thread has released its copies
  EXPECT_EQ(borrow.use_count(), 1);
  for (const SliceId id : {own[0], own[1]}) expect_values({ann, Step{1}}, id);
}

TEST_F(ReceiveBuffersTest, ForgetsAChecksResultIfItsContributionIsErased) {
  Gate gate;
  block(gate);
  ASSERT_TRUE(push_in_place(push_of(ann, 1, own[0]), nullptr));
  buffers.erase({ann, Step{1}});
  ASSERT_TRUE(push_in_place(push_of(ann, 1, own[1]), nullptr)) << "the same step, begun anew";
  gate.open();
  finish_work();
  finish_work();  // the second slice is checked after the first
  EXPECT_EQ(checked, std::vector<SliceId>{own[1]});
}

TEST_F(ReceiveBuffersTest, ErasesIncompleteContributionsOnly) {
  for (const SliceId id : own) receive(push_of(ann, 1, id));
  receive(push_of(ann, 2, own[0]));
  receive(push_of(bob, 1, own[0]));
  buffers.erase_incomplete(ann);
  EXPECT_NE(buffers.find({ann, Step{1}}), nullptr);
  EXPECT_EQ(buffers.find({ann, Step{2}}), nullptr);
  EXPECT_NE(buffers.find({bob, Step{1}}), nullptr);
  EXPECT_NE(buffers.take({ann, Step{1}}).flat, nullptr);
  EXPECT_EQ(buffers.find({ann, Step{1}}), nullptr);
  EXPECT_THROW(buffers.take({ann, Step{1}}), Bug);
}

}  // namespace
}  // namespace motley::runtime
