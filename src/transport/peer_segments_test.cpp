// A peer's segment is mapped once and never when it is ours; slices are found only within it.
#include "transport/peer_segments.h"

#include <gtest/gtest.h>

#include "transport/recording_callbacks_for_tests.h"

namespace motley::transport {
namespace {

Borrowed slice_at(std::uint64_t offset, std::size_t bytes) {
  return {.segment = 3, .offset = offset, .borrow = 0, .slice = {.head = push_of(1), .payload_bytes = bytes}};
}

TEST(PeerSegments, Find_slices_within_a_mapped_segment_only) {
  if (!has_segments()) GTEST_SKIP() << "this kernel has no sealed memory";
  const auto made = make_segment(1'000);
  ASSERT_TRUE(made.ok()) << made.error().message;
  PeerSegments segments;
  EXPECT_FALSE(segments.map({3, 1'000}, *made->file, [](const SegmentId&) { return true; }).ok());
  EXPECT_FALSE(segments.find(slice_at(0, 10)).ok());
  const auto foreign = [](const SegmentId&) { return false; };
  ASSERT_TRUE(segments.map({3, 1'000}, *made->file, foreign).ok());
  EXPECT_FALSE(segments.map({3, 1'000}, *made->file, foreign).ok()) << "offered twice";
  EXPECT_TRUE(segments.find(slice_at(996, 4)).ok());
  EXPECT_FALSE(segments.find(slice_at(996, 5)).ok());
  EXPECT_FALSE(segments.find(slice_at(2, 4)).ok()) << "not aligned";
  EXPECT_FALSE(segments.find(slice_at(1'004, 4)).ok());
  const auto kept = segments.find(slice_at(0, 8));
  segments.unmap(3);
  EXPECT_FALSE(segments.find(slice_at(0, 8)).ok());
  ASSERT_TRUE(kept.ok());
  made->memory->bytes()[7] = std::byte{9};
  EXPECT_EQ(kept->payload[7], std::byte{9}) << "a slice in use stays mapped";
}

}  // namespace
}  // namespace motley::transport
