// Slices pass the ring complete and in order, and each end refuses impossible counts.
#include "transport/ring_slices.h"

#include <gtest/gtest.h>

#include <array>

#include "transport/recording_callbacks_for_tests.h"

namespace motley::transport {
namespace {

TEST(RingSlices, Pass_a_ring_smaller_than_the_slice) {
  std::array<std::byte, 10> memory{};
  RingSender sender(memory);
  RingReceiver receiver(memory);
  const Memory payload = pattern(25, 1);
  Memory place(25);
  sender.begin({.head = push_of(1), .payload = payload, .ticket = 7});
  receiver.begin({.head = push_of(1), .payload_bytes = 25}, place);
  for (const std::size_t expected : {6, 4, 10, 5}) {
    EXPECT_EQ(sender.pending_bytes(), 25U);
    EXPECT_FALSE(receiver.take_complete().has_value());
    EXPECT_EQ(sender.write(expected == 6 ? 6 : 100), expected);
    if (expected == 6) continue;
    ASSERT_TRUE(receiver.take(expected == 4 ? 10 : expected));
    EXPECT_TRUE(sender.acknowledge(receiver.take_unacknowledged()));
  }
  EXPECT_FALSE(sender.busy());
  ASSERT_EQ(sender.completed(), 1U);
  EXPECT_EQ(sender.take_completed()[0].ticket, 7U);
  EXPECT_TRUE(receiver.take_complete().has_value());
  EXPECT_TRUE(place == payload);
}

TEST(RingSlices, Refuse_counts_beyond_the_slice_or_the_ring) {
  std::array<std::byte, 10> memory{};
  RingSender sender(memory);
  RingReceiver receiver(memory);
  EXPECT_FALSE(sender.acknowledge(1));
  EXPECT_FALSE(receiver.take(1)) << "no slice was begun";
  Memory place(15);
  receiver.begin({.head = push_of(1), .payload_bytes = 15}, place);
  EXPECT_FALSE(receiver.take(16));
  EXPECT_TRUE(receiver.take(8));
  EXPECT_FALSE(receiver.take(3)) << "8 of 10 bytes are not acknowledged";
  EXPECT_EQ(receiver.take_unacknowledged(), 8U);
  EXPECT_TRUE(receiver.take(3));
}

}  // namespace
}  // namespace motley::transport
