// Parts of a model are gathered and scattered back.
#include "store/staged_model.h"

#include <gtest/gtest.h>

#include "base/check.h"

namespace motley::store {
namespace {

/// Values 0..9, of which 8 and 9 are statistics; the stage has parameters 2..4 and statistic 8.
const StagePlace middle{{{0, 2, 3}, {3, 8, 1}}, 4, 3};

TEST(StagedModel, APartHasItsValuesAndMoments) {
  StagedModel model{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {0, 10, 20, 30, 40, 50, 60, 70, 0, 0}, {}, 5};
  const StagePart part = model.part(middle);
  EXPECT_EQ(part.values, (std::vector<float>{2, 3, 4, 8}));
  EXPECT_EQ(part.first, (std::vector<float>{20, 30, 40}));
  EXPECT_TRUE(part.second.empty());
  EXPECT_EQ(part.updates, 5U);
}

TEST(StagedModel, PuttingAPartBackRestoresTheModel) {
  const StagedModel model{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {0, 10, 20, 30, 40, 50, 60, 70, 0, 0}, {0, 1, 1, 1, 1, 1, 1, 1, 0, 0}, 5};
  const StagePlace rest{{{0, 0, 2}, {2, 5, 3}, {5, 9, 1}}, 6, 5};
  StagedModel again;
  again.values.resize(10);
  again.put(middle, model.part(middle));
  again.put(rest, model.part(rest));
  EXPECT_EQ(again.values, model.values);
  EXPECT_EQ(again.first, model.first);
  EXPECT_EQ(again.second, model.second);
  EXPECT_EQ(again.updates, model.updates);
}

TEST(StagedModel, RejectsAnIncompletePart) {
  StagedModel model{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {}, {}, 0};
  EXPECT_THROW(model.put(middle, StagePart{{1, 2}, {}, {}, 0}), Bug);
}

}  // namespace
}  // namespace motley::store
