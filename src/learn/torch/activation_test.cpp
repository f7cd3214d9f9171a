// Memory of a device that one sample needs: the outputs of the layers and their gradients, in proportion to their widths.
#include "learn/torch/learners.h"
#include "learn/torch/test_models.h"

namespace motley::learn {
namespace {

using Make = Result<std::unique_ptr<Learner>> (*)(const ModelSpec&, std::shared_ptr<const DataSet>);

std::uint64_t bytes_of(const ModelSpec& spec, Make make = make_learner) {
  use_threads(1);
  return make(spec, spec.kind == "transformer" ? small_text() : small_pictures()).value()->activation_bytes_per_sample();
}

ModelSpec mlp(std::vector<std::uint64_t> hidden) { return {.kind = "mlp", .hidden = std::move(hidden)}; }

TEST(ActivationBytes, Mlp_needs_twice_its_widths) {
  EXPECT_EQ(bytes_of(mlp({12, 7})) - bytes_of(mlp({})), 2 * sizeof(float) * (12 + 7));
  EXPECT_EQ(bytes_of(mlp({1000})) - bytes_of(mlp({500})), 2 * sizeof(float) * 500);
}

/// A model as a function of a width or a depth, of which each unit costs the same.
struct Growing {
  std::string name;
  ModelSpec (*of_size)(std::uint64_t size);
  Make make;
};

class ActivationBytesGrow : public testing::TestWithParam<Growing> {};

TEST_P(ActivationBytesGrow, Linearly) {
  const auto bytes = [](std::uint64_t size) { return static_cast<double>(bytes_of(GetParam().of_size(size), GetParam().make)); };
  const double first = bytes(16) - bytes(8);
  EXPECT_GT(first, 0);
  EXPECT_NEAR(bytes(24) - bytes(16), first, 0.01 * first);
  EXPECT_NEAR(bytes(40) - bytes(24), 2 * first, 0.02 * first);
}

INSTANTIATE_TEST_SUITE_P(
    Each, ActivationBytesGrow,
    testing::Values(
        Growing{"Dense",
                [](std::uint64_t size) {
                  return mlp({size, 2 * size});
                },
                make_learner},
        Growing{"MlpByAutograd",
                [](std::uint64_t size) {
                  return mlp({size, 2 * size});
                },
                make_autograd_learner},
        Growing{"Cnn", [](std::uint64_t size) { return ModelSpec{.kind = "cnn", .hidden = {}, .width = size}; }, make_learner},
        Growing{"Resnet", [](std::uint64_t size) { return ModelSpec{.kind = "resnet20", .hidden = {}, .width = size}; }, make_learner},
        Growing{"TransformerByWidth",
                [](std::uint64_t size) { return ModelSpec{.kind = "transformer", .hidden = {}, .width = size, .heads = 2}; }, make_learner},
        Growing{"TransformerByDepth",
                [](std::uint64_t size) { return ModelSpec{.kind = "transformer", .hidden = {}, .width = 8, .depth = size, .heads = 2}; },
                make_learner}),
    [](const auto& growing) { return growing.param.name; });

TEST(ActivationBytes, Autograd_needs_no_less_than_matrix_products) {
  EXPECT_GE(bytes_of(mlp({128, 64}), make_autograd_learner), bytes_of(mlp({128, 64})));
}

}  // namespace
}  // namespace motley::learn
