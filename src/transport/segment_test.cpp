// A shared segment is the same memory on both sides, cannot be shrunk, and nothing else is mapped in its place.
#include "transport/segment.h"

#include <algorithm>

#include "transport/invalid_memory_for_tests.h"

namespace motley::transport {
namespace {

constexpr std::size_t bytes = 4 << 20;

class Segments : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_segments()) GTEST_SKIP() << "this kernel has no sealed memory";
  }
};

TEST_F(Segments, Are_the_same_memory_in_every_mapping) {
  auto made = make_segment(1'000);
  ASSERT_TRUE(made.ok()) << made.error().message;
  auto found = map_segment(*made->file, 1'000);
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ((*found)->bytes().size(), 1'000U);
  made->memory->bytes()[999] = std::byte{7};
  EXPECT_EQ((*found)->bytes()[999], std::byte{7});
  const SegmentId id = id_of(*made->file);
  EXPECT_NE(id, id_of(*make_segment(1'000)->file));
  made = make_segment(1'000);
  EXPECT_EQ((*found)->bytes()[999], std::byte{7}) << "it stays mapped";
}

TEST_F(Segments, Cannot_be_shrunk_by_their_owner) {
  const auto made = make_segment(bytes);
  ASSERT_TRUE(made.ok()) << made.error().message;
  auto found = map_segment(*made->file, bytes);
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(::ftruncate(made->file->number(), 0), -1);
  const auto last = (*found)->bytes().back();
  EXPECT_EQ(last, std::byte{0});
}

TEST_F(Segments, Are_sealed_memory_of_that_size_only) {
  for (const Invalid& invalid : invalid_memory(bytes)) {
    SCOPED_TRACE(invalid.what);
    const auto found = map_segment(invalid.file, invalid.claimed_bytes);
    EXPECT_FALSE(found.ok());
  }
  EXPECT_FALSE(map_segment(Descriptor(), bytes).ok());
  EXPECT_FALSE(map_segment(memory_sealed_by(F_SEAL_SHRINK, 0), 0).ok());
}

TEST_F(Segments, Are_not_larger_than_the_machine) {
  const std::size_t beyond = memory_of_this_machine() + 4096;
  const auto found = map_segment(memory_sealed_by(F_SEAL_SHRINK, beyond), beyond);
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.error().message.find("of this machine"), std::string::npos) << found.error().message;
}

}  // namespace
}  // namespace motley::transport
