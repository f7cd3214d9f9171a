// Batches of a pipeline: every position is in exactly one micro-batch.
#include "base/batching.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace motley {
namespace {

TEST(Batching, Full_mini_batches_are_equal) {
  const Batching batching{.total = 24, .samples = 8, .micros = 3};
  EXPECT_EQ(batching.mini_batches(), 3U);
  EXPECT_EQ(batching.micro_batches(), 9U);
  EXPECT_EQ(batching.of_micro(4).first, 8U + 2);
  EXPECT_EQ(batching.of_micro(4).size(), 3U);
}

TEST(Batching, Last_mini_batch_has_the_remaining_samples) {
  const Batching batching{.total = 2 * 8 + 5, .samples = 8, .micros = 4};
  EXPECT_EQ(batching.mini_batches(), 3U);
  EXPECT_EQ(batching.size_of(2), 5U);
  EXPECT_EQ(batching.micros_of(2), 3U) << "of 2, 2 and 1, not of 5 and three empty ones";
  EXPECT_EQ(batching.micro_batches(), 4U + 4 + 3);
  EXPECT_EQ(batching.until(3), 21U);
}

TEST(Batching, Without_an_end_every_mini_batch_is_full) {
  const Batching batching{.samples = 7, .micros = 7};
  EXPECT_EQ(batching.size_of(1'000'000), 7U);
  EXPECT_EQ(batching.of_micro(7'000'001).size(), 1U);
}

TEST(Batching, Every_position_is_in_one_non_empty_micro_batch) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, "batching");
    const std::uint64_t samples = 1 + rng.below(40);
    const Batching batching{1 + rng.below(200), samples, static_cast<std::uint32_t>(1 + rng.below(samples))};
    std::uint64_t next = 0;
    for (std::uint64_t micro = 0; micro < batching.micro_batches(); ++micro) {
      const auto [first, last] = batching.of_micro(micro);
      ASSERT_EQ(first, next);
      ASSERT_LT(first, last);
      ASSERT_LE(last - first, (samples + batching.micros - 1) / batching.micros) << "no micro-batch is larger than usual";
      next = last;
    }
    EXPECT_EQ(next, batching.total);
    EXPECT_EQ((batching.micro_batches() + batching.micros - 1) / batching.micros, batching.mini_batches());
  }
}

}  // namespace
}  // namespace motley
