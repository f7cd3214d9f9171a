#include "sim/stage_memory.h"

#include <gtest/gtest.h>

namespace motley::sim {
namespace {

TEST(StageMemory, HoldsActivationsOfEveryMicroBatch) { EXPECT_EQ(StageMemory(10, 100).activation_bytes(3), 30); }

TEST(StageMemory, StashesEachOldVersionOnce) {
  StageMemory memory(10, 100);
  memory.begin(0, 4, false);
  memory.begin(1, 4, false);
  memory.begin(2, 5, false);
  EXPECT_EQ(memory.version_of(1), 4U);
  EXPECT_EQ(memory.stashed_bytes(4), 100) << "version 4 is the newest, 5 is not";
  EXPECT_EQ(memory.stashed_bytes(6), 200);
  memory.release(0);
  EXPECT_EQ(memory.stashed_bytes(5), 100) << "micro-batch 1 still uses version 4";
  memory.release(1);
  EXPECT_EQ(memory.stashed_bytes(5), 0);
}

TEST(StageMemory, StashesPredictedParametersBesideTheNewest) {
  StageMemory memory(10, 100);
  memory.begin(0, 4, true);
  EXPECT_EQ(memory.stashed_bytes(4), 100);
}

}  // namespace
}  // namespace motley::sim
