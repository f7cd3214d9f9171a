// Buffers: their contents, and the pool that recycles them.
#include "runtime/buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>
#include <vector>

namespace motley::runtime {
namespace {

constexpr std::size_t large = std::size_t{3} << 20;  // values: 12 MiB

TEST(Buffer, HoldsItsValuesAtEverySize) {
  for (const std::size_t values : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, large}) {
    Buffer buffer(values);
    EXPECT_EQ(buffer.floats().size(), values);
    std::fill(buffer.floats().begin(), buffer.floats().end(), 2.5F);
    EXPECT_TRUE(values == 0 || buffer.floats().back() == 2.5F);
    EXPECT_EQ(buffer.bytes(0, values).size(), values * sizeof(float));
  }
}

TEST(Buffer, BuffersInUseDoNotOverlap) {
  std::vector<SharedBuffer> held;
  std::set<const float*> places;
  for (int i = 0; i < 3; ++i) {
    held.push_back(make_buffer(large));
    places.insert(held.back()->floats().data());
  }
  EXPECT_EQ(places.size(), 3U);
}

TEST(Buffer, MemoryOfLargeBuffersIsRecycled) {
  const float* place = make_buffer(large + 1)->floats().data();
  EXPECT_EQ(make_buffer(large + 1)->floats().data(), place);
  EXPECT_NE(make_buffer(large + 2)->floats().data(), place);
}

TEST(Buffer, ThreadsCanAllocateAndFreeConcurrently) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < 50; ++i) {
        const SharedBuffer buffer = make_buffer(large);
        const auto mark = static_cast<float>(t * 1000 + i);
        buffer->floats().front() = buffer->floats().back() = mark;
        EXPECT_EQ(buffer->floats().front(), mark);
        EXPECT_EQ(buffer->floats().back(), mark);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace motley::runtime
