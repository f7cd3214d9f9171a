#include "store/layer_timing.h"

#include <gtest/gtest.h>

#include "base/check.h"

namespace motley::store {
namespace {

// Three blocks with 1, 2 and 1 quarters of the work; the middle one has no tensor, the last two tensors and a statistic.
const std::vector<TensorPlace> tensors{
    {0, 10, TensorKind::parameter}, {10, 10, TensorKind::parameter}, {20, 4, TensorKind::parameter}, {24, 2, TensorKind::statistic}};
const std::vector<std::uint32_t> blocks{0, 2, 2, 2};
const std::vector<double> work{2, 4, 2};

TEST(LayerTiming, ForwardTakesAThirdAndBackwardTheRestInReverse) {
  const LayerTiming made = layer_timing(cut(tensors, 5, 1), tensors, blocks, work);
  const double before_last = 0.75;
  EXPECT_EQ(made.read, (std::vector<double>{0, 0, before_last / 3, before_last / 3, before_last / 3, 0}));
  ASSERT_EQ(made.gradient_ready.size(), 6U);
  EXPECT_EQ(made.gradient_ready[0], 1);
  EXPECT_NEAR(made.gradient_ready[2], 1.0 / 3 + 2.0 / 3 * 0.25, 1e-12) << "the last block's backward comes first";
  EXPECT_EQ(made.gradient_ready[5], 1) << "statistics are whole when everything is";
}

TEST(LayerTiming, ASliceOfSeveralBlocksBelongsToTheFirst) {
  const LayerTiming made = layer_timing(cut(tensors, 100, 1), tensors, blocks, work);
  EXPECT_EQ(made.read, (std::vector<double>{0, 0}));
  EXPECT_EQ(made.gradient_ready, (std::vector<double>{1, 1}));
}

TEST(LayerTiming, RejectsAModelWithoutWork) {
  EXPECT_THROW(layer_timing(cut(tensors, 5, 1), tensors, blocks, std::vector<double>{0, 0, 0}), Bug);
}

}  // namespace
}  // namespace motley::store
