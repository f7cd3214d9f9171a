// Memory that is shared is the same on both sides, cannot be taken away, and nothing else is mapped in its place.
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

TEST_F(Segments, AreTheSameMemoryForWhoeverMapsThem) {
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
  EXPECT_EQ((*found)->bytes()[999], std::byte{7}) << "it stays for who has mapped it";
}

TEST_F(Segments, CannotBeShrunkByTheirOwner) {
  const auto made = make_segment(bytes);
  ASSERT_TRUE(made.ok()) << made.error().message;
  auto found = map_segment(*made->file, bytes);
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(::ftruncate(made->file->number(), 0), -1);
  const auto last = (*found)->bytes().back();
  EXPECT_EQ(last, std::byte{0});
}

TEST_F(Segments, AreNothingElseThanSealedMemoryOfThatSize) {
  for (const Invalid& invalid : invalid_memory(bytes)) {
    SCOPED_TRACE(invalid.what);
    const auto found = map_segment(invalid.file, invalid.claimed_bytes);
    EXPECT_FALSE(found.ok());
  }
  EXPECT_FALSE(map_segment(Descriptor(), bytes).ok());
  EXPECT_FALSE(map_segment(memory_sealed_by(F_SEAL_SHRINK, 0), 0).ok());
}

TEST_F(Segments, AreNotLargerThanTheMachine) {
  const std::size_t beyond = memory_of_this_machine() + 4096;
  const auto found = map_segment(memory_sealed_by(F_SEAL_SHRINK, beyond), beyond);
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.error().message.find("of this machine"), std::string::npos) << found.error().message;
}

}  // namespace
}  // namespace motley::transport
