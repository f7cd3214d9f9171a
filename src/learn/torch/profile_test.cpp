// Cost of each block of a model, counted from its shapes.
#include "learn/torch/learners.h"
#include "learn/torch/test_models.h"

namespace motley::learn {
namespace {

class Profile : public testing::TestWithParam<Example> {};

TEST_P(Profile, HasEveryBlockOnceWithAllParameters) {
  const auto learner = GetParam().learner();
  const std::vector<BlockProfile> blocks = learner->profile();
  ASSERT_EQ(blocks.size(), learner->shape().blocks);
  std::uint64_t parameters = 0;
  for (const BlockProfile& block : blocks) {
    parameters += block.parameters;
    EXPECT_FALSE(block.name.empty());
    EXPECT_GT(block.work, 0) << block.name;
    EXPECT_GT(block.output_bytes, 0U) << block.name;
    EXPECT_GE(block.kept_bytes, block.output_bytes) << block.name;
  }
  EXPECT_EQ(parameters, learner->shape().parameters);
}

TEST_P(Profile, Leaves_the_model_unchanged) {
  const auto learner = GetParam().learner();
  const auto fresh = GetParam().learner();
  learner->profile();
  const Values values = initial(*fresh);
  EXPECT_EQ(step(*learner, values, {0, 1, 2}).gradient, step(*fresh, values, {0, 1, 2}).gradient);
}

INSTANTIATE_TEST_SUITE_P(Each, Profile, testing::ValuesIn(models), [](const auto& model) { return model.param.name; });

TEST(Profile, Mlp_costs_the_same_by_matrix_products_and_autograd) {
  const ModelSpec spec{.kind = "mlp", .hidden = {12, 7}};
  const auto by_hand = make_learner(spec, small_pictures()).value()->profile();
  const auto by_autograd = make_autograd_learner(spec, small_pictures()).value()->profile();
  ASSERT_EQ(by_hand.size(), by_autograd.size());
  for (std::size_t b = 0; b < by_hand.size(); ++b) {
    EXPECT_EQ(by_hand[b].work, by_autograd[b].work) << b;
    EXPECT_EQ(by_hand[b].output_bytes, by_autograd[b].output_bytes) << b;
    EXPECT_EQ(by_hand[b].kept_bytes, by_autograd[b].kept_bytes) << b;
    EXPECT_EQ(by_hand[b].name, by_autograd[b].name) << b;
  }
  EXPECT_EQ(by_hand[1].work, 12 * 7 + 7) << "products, and the rectifier";
}

// A 3x3 convolution costs 9 products for each input channel and each output value; it is padded, so there is a value for each pixel.
TEST(Profile, Convolution_costs_grow_with_pixels_and_channels) {
  const auto of_width = [](std::uint64_t width) {
    return make_learner({.kind = "cnn", .hidden = {}, .width = width}, small_pictures()).value()->profile();
  };
  const auto narrow = of_width(4), wide = of_width(8);
  EXPECT_EQ(wide[0].work, 2 * narrow[0].work) << "the picture has as many channels as before";
  EXPECT_GT(wide[1].work, 3.5 * narrow[1].work);
  EXPECT_LT(wide[1].work, 4 * narrow[1].work);
}

}  // namespace
}  // namespace motley::learn
