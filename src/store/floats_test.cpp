#include "store/floats.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace motley::store {
namespace {

TEST(Floats, AreAlignedToACacheLineAtEverySize) {
  for (const std::size_t count : {1U, 3U, 16U, 1000U, 100'000U, 524'287U, 524'288U, 1'048'576U, 3'000'001U}) {
    const Floats floats(count, 1.5F);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(floats.data()) % 64, 0U) << count;
    EXPECT_EQ(floats.front(), 1.5F);
    EXPECT_EQ(floats.back(), 1.5F);
    if (count * sizeof(float) >= std::size_t{4} << 20U) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(floats.data()) % (std::size_t{2} << 20U), 0U) << "a huge page";
    }
  }
}

TEST(Floats, CanBeEmptyGrowAndBeMoved) {
  Floats floats;
  for (int i = 0; i < 1000; ++i) floats.push_back(static_cast<float>(i));
  const Floats update_norm = std::move(floats);
  EXPECT_EQ(update_norm.size(), 1000U);
  EXPECT_EQ(update_norm[999], 999.0F);
}

TEST(Floats, ThrowWhenMemoryIsExhausted) {
  EXPECT_THROW(static_cast<void>(allocate_aligned(std::numeric_limits<std::size_t>::max() - 1)), std::bad_alloc);
}

}  // namespace
}  // namespace motley::store
