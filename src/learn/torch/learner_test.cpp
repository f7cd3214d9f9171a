// Properties of a learner, tested with every model.
#include "learn/learner.h"

#include <set>
#include <thread>

#include "learn/torch/learners.h"
#include "learn/torch/test_models.h"

namespace motley::learn {
namespace {

class LearnerLaw : public testing::TestWithParam<Example> {};
INSTANTIATE_TEST_SUITE_P(Each, LearnerLaw, testing::ValuesIn(models), [](const auto& each) { return each.param.name; });

TEST_P(LearnerLaw, Tensors_fill_the_buffer_without_gaps_parameters_first) {
  const auto learner = GetParam().learner();
  const ModelShape& shape = learner->shape();
  std::uint64_t offset = 0;
  std::set<std::string> names;
  for (const Tensor& tensor : shape.tensors) {
    EXPECT_EQ(tensor.offset, offset) << tensor.name;
    EXPECT_EQ(tensor.kind, offset < shape.parameters ? TensorKind::parameter : TensorKind::statistic) << tensor.name;
    std::uint64_t count = 1;
    for (const std::int64_t size : tensor.shape) count *= static_cast<std::uint64_t>(size);
    EXPECT_EQ(tensor.count, count) << tensor.name;
    EXPECT_LT(tensor.block, shape.blocks) << tensor.name;
    EXPECT_TRUE(names.insert(tensor.name).second) << tensor.name << " occurs twice";
    offset += tensor.count;
  }
  EXPECT_EQ(offset, shape.values());
}

TEST_P(LearnerLaw, Blocks_are_in_forward_order_and_have_parameters) {
  const auto learner = GetParam().learner();
  std::uint32_t block = 0;
  for (const Tensor& tensor : learner->shape().tensors) {
    if (tensor.kind == TensorKind::statistic) break;
    EXPECT_TRUE(tensor.block == block || tensor.block == block + 1) << tensor.name;
    block = tensor.block;
  }
  EXPECT_EQ(block + 1, learner->shape().blocks);
}

TEST_P(LearnerLaw, InitialValuesFollowFromTheSeedAlone) {
  const auto one = GetParam().learner(), other = GetParam().learner();
  const Values values = initial(*one, 7);
  step(*other, initial(*other, 3), {0, 1});
  EXPECT_EQ(initial(*other, 7), values);
  EXPECT_NE(initial(*other, 8), values);
}

/// In one block, each tensor's gradient scaled to norm 1; elsewhere zero.
Values uphill(const ModelShape& shape, std::uint32_t block, const Values& gradient) {
  Values direction(gradient.size());
  for (const Tensor& tensor : shape.tensors) {
    if (tensor.kind == TensorKind::statistic || tensor.block != block) continue;
    const double length = norm(std::span(gradient).subspan(tensor.offset, tensor.count));
    EXPECT_GT(length, 1e-6) << tensor.name << " has no gradient";
    for (std::uint64_t i = tensor.offset; i < tensor.offset + tensor.count; ++i) direction[i] = gradient[i] / static_cast<float>(length);
  }
  return direction;
}

Values update_norm(const Values& values, const Values& direction, double distance) {
  Values result = values;
  for (std::size_t i = 0; i < values.size(); ++i) result[i] += static_cast<float>(distance) * direction[i];
  return result;
}

double product(const Values& a, const Values& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

/// Along a line the loss must rise by the integral of its gradient. (A difference quotient is wrong at the kinks of rectifiers.)
TEST_P(LearnerLaw, GradientsMatchFiniteDifferences) {
  const auto learner = GetParam().learner();
  const Values values = initial(*learner);
  const auto samples = samples_from(0, 12);
  const Values gradient = step(*learner, values, samples).gradient;
  constexpr double reach = 0.005;
  constexpr int pieces = 40;
  for (std::uint32_t block = 0; block < learner->shape().blocks; ++block) {
    const Values direction = uphill(learner->shape(), block, gradient);
    const auto at = [&](double distance) { return step(*learner, update_norm(values, direction, distance), samples); };
    double integral = 0;
    for (int piece = 0; piece < pieces; ++piece)
      integral += product(at(reach * (2 * (piece + 0.5) / pieces - 1)).gradient, direction) * 2 * reach / pieces;
    const double rise = mean_loss(at(reach).result) - mean_loss(at(-reach).result);
    EXPECT_NEAR(rise, integral, 0.01 * std::abs(integral) + 1e-6) << "block " << block;
  }
}

TEST_P(LearnerLaw, Equal_arguments_give_equal_bits_in_any_thread) {
  const auto learner = GetParam().learner();
  const Values values = initial(*learner);
  const auto samples = samples_from(3, 13);
  const Step first = step(*learner, values, samples);
  const StepResult evaluated = learner->evaluate(values);
  step(*learner, initial(*learner, 9), samples_from(0, 29));

  const Step again = step(*learner, values, samples);
  EXPECT_EQ(again.gradient, first.gradient);
  EXPECT_EQ(again.result.loss_sum, first.result.loss_sum);
  EXPECT_EQ(learner->evaluate(values).loss_sum, evaluated.loss_sum);

  Values elsewhere;
  std::thread([&] { elsewhere = step(*GetParam().learner(), values, samples).gradient; }).join();
  EXPECT_EQ(elsewhere, first.gradient);
}

TEST_P(LearnerLaw, Gradient_of_a_union_is_the_weighted_mean_of_its_parts) {
  const auto learner = GetParam().learner();
  if (learner->shape().statistics > 0) GTEST_SKIP() << "batch norm sees the batch as a whole";
  const Values values = initial(*learner);
  const Step all = step(*learner, values, samples_from(0, 24));
  const Step part1 = step(*learner, values, samples_from(0, 7)), part2 = step(*learner, values, samples_from(7, 17));
  Values mean(values.size());
  for (std::size_t i = 0; i < mean.size(); ++i) mean[i] = (7 * part1.gradient[i] + 17 * part2.gradient[i]) / 24;
  expect_close(mean, all.gradient, 1e-5);
  EXPECT_NEAR(part1.result.loss_sum + part2.result.loss_sum, all.result.loss_sum, 1e-4);
}

TEST_P(LearnerLaw, LearnsAFewSamples) {
  const auto learner = GetParam().learner();
  Values values = initial(*learner);
  const auto samples = samples_from(0, 16);
  const double before = mean_loss(step(*learner, values, samples).result);
  for (int i = 0; i < 60; ++i) {
    const Values gradient = step(*learner, values, samples).gradient;
    for (std::size_t v = 0; v < values.size(); ++v)
      values[v] += v < learner->shape().parameters ? -GetParam().rate * gradient[v] : gradient[v];
  }
  EXPECT_LT(mean_loss(step(*learner, values, samples).result), 0.6 * before);
}

TEST_P(LearnerLaw, One_sample_is_a_batch) {
  const auto learner = GetParam().learner();
  const Step one = step(*learner, initial(*learner), {5});
  EXPECT_EQ(one.result.samples, 1U);
  EXPECT_TRUE(std::isfinite(one.result.loss_sum));
  for (const float g : one.gradient) ASSERT_TRUE(std::isfinite(g));
}

TEST_P(LearnerLaw, WrongSizesAreOurBug) {
  const auto learner = GetParam().learner();
  const Values values = initial(*learner);
  Values out(values.size()), less(values.size() - 1);
  const std::vector<std::uint32_t> one{0}, beyond{1'000'000};
  EXPECT_THROW(learner->gradient(values, {}, out), Bug);
  EXPECT_THROW(learner->gradient(less, one, out), Bug);
  EXPECT_THROW(learner->gradient(values, one, less), Bug);
  EXPECT_THROW(learner->gradient(values, beyond, out), Bug);
  EXPECT_THROW(learner->evaluate(less), Bug);
  EXPECT_THROW(learner->initialize(1, less), Bug);
}

TEST(Learner, Initial_weights_come_from_the_stream_of_their_tensor) {
  const auto learner = models[0].learner();
  Rng rng(4, "initial linear1.weight");
  EXPECT_EQ(initial(*learner, 4)[0], static_cast<float>(std::sqrt(2.0 / 128) * rng.normal()));
}

TEST(Learner, EvaluationCoversEverySampleOnceAcrossChunks) {
  const PictureFormat format{2, 8, 8, 3};
  const LabelledPictures same = random_pictures(format, 150, Rng(2, "same"));
  auto learner = make_learner(models[0].spec, std::make_shared<InMemoryDataSet>(Pictures(format, same, same)));
  const Values values = initial(**learner);
  const StepResult evaluated = (*learner)->evaluate(values), trained = step(**learner, values, samples_from(0, 150)).result;
  EXPECT_EQ(evaluated.samples, 150U);
  EXPECT_EQ(evaluated.correct, trained.correct);
  EXPECT_NEAR(evaluated.loss_sum, trained.loss_sum, 1e-3);
}

TEST(Learner, Text_counts_sequences_in_training_characters_in_evaluation) {
  const auto learner = models[5].learner();
  const Values values = initial(*learner);
  const StepResult trained = step(*learner, values, samples_from(0, 4)).result;
  EXPECT_EQ(trained.samples, 4U);
  EXPECT_LE(trained.correct, 4U);
  EXPECT_NEAR(mean_loss(trained), std::log(7.0), 0.3);
  const StepResult evaluated = learner->evaluate(values);
  EXPECT_EQ(evaluated.samples, 9U * 6U);
  EXPECT_NEAR(mean_loss(evaluated), std::log(7.0), 0.3);
}

class DenseTwin : public testing::TestWithParam<std::vector<std::uint64_t>> {};
INSTANTIATE_TEST_SUITE_P(Hidden, DenseTwin,
                         testing::Values(std::vector<std::uint64_t>{}, std::vector<std::uint64_t>{9},
                                         std::vector<std::uint64_t>{16, 8, 5}));

TEST_P(DenseTwin, MatrixProductsByHandEqualAutograd) {
  const ModelSpec spec{.kind = "mlp", .hidden = GetParam()};
  auto fast = make_learner(spec, small_pictures()), clear = make_autograd_learner(spec, small_pictures());
  const Values values = initial(**fast);
  for (const std::uint32_t batch : {1U, 12U, 64U}) {
    const Step one = step(**fast, values, samples_from(0, batch)), twin = step(**clear, values, samples_from(0, batch));
    expect_close(one.gradient, twin.gradient, 1e-6);
    EXPECT_NEAR(one.result.loss_sum, twin.result.loss_sum, 1e-6 * twin.result.loss_sum);
    EXPECT_EQ(one.result.correct, twin.result.correct);
  }
  EXPECT_NEAR((*fast)->evaluate(values).loss_sum, (*clear)->evaluate(values).loss_sum, 1e-4);
}

TEST(Backend, Describes_torch_and_blas) {
  EXPECT_TRUE(available());
  EXPECT_NE(describe_backend().find("libtorch "), std::string::npos);
}

}  // namespace
}  // namespace motley::learn
