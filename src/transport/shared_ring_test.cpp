// Bytes written to the ring are read in order, across the end of the ring, and never more than were written.
#include "transport/shared_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "base/rng.h"
#include "transport/recording_callbacks_for_tests.h"

namespace motley::transport {
namespace {

TEST(SharedRing, Writes_no_more_than_its_free_space) {
  std::array<std::byte, 10> memory{};
  RingWriter in(memory);
  EXPECT_EQ(in.write(pattern(7, 1)), 7U);
  EXPECT_EQ(in.write(pattern(7, 2)), 3U);
  EXPECT_EQ(in.free_bytes(), 0U);
  EXPECT_EQ(in.write(pattern(1, 3)), 0U);
  ASSERT_TRUE(in.taken(4));
  EXPECT_EQ(in.write(pattern(7, 4)), 4U);
}

TEST(SharedRing, Refuses_an_acknowledgement_of_unwritten_bytes) {
  std::array<std::byte, 10> memory{};
  RingWriter in(memory);
  EXPECT_EQ(in.write(pattern(5, 1)), 5U);
  EXPECT_FALSE(in.taken(6));
  EXPECT_TRUE(in.taken(5));
  EXPECT_FALSE(in.taken(1));
}

TEST(SharedRing, Reads_written_bytes_in_order) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed, "ring");
    Memory memory(1 + rng.below(50));
    RingWriter in(memory);
    RingReader out(memory);
    const Memory all = pattern(1'000, static_cast<std::uint32_t>(seed));
    Memory back(all.size());
    std::size_t written = 0, taken = 0;
    while (taken < all.size()) {
      written += in.write(std::span(all).subspan(written, std::min<std::size_t>(all.size() - written, rng.below(60))));
      const std::size_t some = rng.below(written - taken + 1);
      out.take(std::span(back).subspan(taken, some));
      ASSERT_TRUE(in.taken(some));
      taken += some;
    }
    EXPECT_TRUE(back == all);
  }
}

}  // namespace
}  // namespace motley::transport
