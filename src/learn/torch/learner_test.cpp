// The laws of a learner, held against every model; and what only some models must do.
#include "learn/learner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <thread>

#include "learn/test_files.h"
#include "learn/test_samples.h"
#include "learn/torch/learners.h"

namespace motley::learn {
namespace {

using Values = std::vector<float>;

struct Model {
  std::string name;
  ModelSpec spec;
  float rate{};  // a learning rate at which it learns a few samples
  [[nodiscard]] std::shared_ptr<const DataSet> data() const { return spec.kind == "transformer" ? small_text() : small_pictures(); }
  [[nodiscard]] std::unique_ptr<Learner> learner() const {
    use_threads(1);
    auto made = make_learner(spec, data());
    return std::move(made.value());
  }
};

void PrintTo(const Model& model, std::ostream* out) { *out << model.name; }

const Model models[] = {{"Mlp", {.kind = "mlp", .hidden = {12, 7}}, 0.1F},
                        {"MlpWithoutHiddenLayers", {.kind = "mlp", .hidden = {}}, 0.05F},
                        {"Cnn", {.kind = "cnn", .hidden = {}, .width = 3}, 0.05F},
                        {"Resnet20", {.kind = "resnet20", .hidden = {}, .width = 2}, 0.05F},
                        {"Vgg11", {.kind = "vgg11", .hidden = {}, .width = 2}, 0.05F},
                        {"Transformer", {.kind = "transformer", .hidden = {}, .width = 8, .depth = 2, .heads = 2}, 0.5F}};

struct Step {
  StepResult result;
  Values gradient;
};

Step step(Learner& learner, const Values& values, const std::vector<std::uint32_t>& samples) {
  Step taken{{}, Values(values.size())};
  taken.result = learner.gradient(values, samples, taken.gradient);
  return taken;
}

Values initial(Learner& learner, std::uint64_t seed = 1) {
  Values values(learner.shape().values());
  learner.initialize(seed, values);
  return values;
}

double mean_loss(const StepResult& result) { return result.loss_sum / static_cast<double>(result.samples); }

double norm(std::span<const float> x) {
  double sum = 0;
  for (const float v : x) sum += static_cast<double>(v) * static_cast<double>(v);
  return std::sqrt(sum);
}

void expect_close(const Values& actual, const Values& expected, double relative) {
  Values difference(actual.size());
  for (std::size_t i = 0; i < actual.size(); ++i) difference[i] = actual[i] - expected[i];
  EXPECT_LE(norm(difference), relative * norm(expected));
}

class LearnerLaw : public testing::TestWithParam<Model> {};
INSTANTIATE_TEST_SUITE_P(Each, LearnerLaw, testing::ValuesIn(models), [](const auto& each) { return each.param.name; });

TEST_P(LearnerLaw, TensorsFillTheFlatBufferWithoutGapsParametersFirst) {
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

TEST_P(LearnerLaw, BlocksComeInForwardOrderAndEachHasParameters) {
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

/// Within one block, each tensor's own gradient at length one; elsewhere zero.
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

Values moved(const Values& values, const Values& direction, double distance) {
  Values result = values;
  for (std::size_t i = 0; i < values.size(); ++i) result[i] += static_cast<float>(distance) * direction[i];
  return result;
}

double product(const Values& a, const Values& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

/// Along a line the loss must rise by the integral of its gradient. (A bare difference quotient stumbles over rectifiers' kinks.)
TEST_P(LearnerLaw, GradientsMatchFiniteDifferences) {
  const auto learner = GetParam().learner();
  const Values values = initial(*learner);
  const auto samples = samples_from(0, 12);
  const Values gradient = step(*learner, values, samples).gradient;
  constexpr double reach = 0.005;
  constexpr int pieces = 40;
  for (std::uint32_t block = 0; block < learner->shape().blocks; ++block) {
    const Values direction = uphill(learner->shape(), block, gradient);
    const auto at = [&](double distance) { return step(*learner, moved(values, direction, distance), samples); };
    double integral = 0;
    for (int piece = 0; piece < pieces; ++piece)
      integral += product(at(reach * (2 * (piece + 0.5) / pieces - 1)).gradient, direction) * 2 * reach / pieces;
    const double rise = mean_loss(at(reach).result) - mean_loss(at(-reach).result);
    EXPECT_NEAR(rise, integral, 0.01 * std::abs(integral) + 1e-6) << "block " << block;
  }
}

TEST_P(LearnerLaw, EqualArgumentsGiveEqualBitsWhateverCameBeforeAndInAnyThread) {
  const auto learner = GetParam().learner();
  const Values values = initial(*learner);
  const auto samples = samples_from(3, 13);
  const Step first = step(*learner, values, samples);
  const StepResult judged = learner->evaluate(values);
  step(*learner, initial(*learner, 9), samples_from(0, 29));

  const Step again = step(*learner, values, samples);
  EXPECT_EQ(again.gradient, first.gradient);
  EXPECT_EQ(again.result.loss_sum, first.result.loss_sum);
  EXPECT_EQ(learner->evaluate(values).loss_sum, judged.loss_sum);

  Values elsewhere;
  std::thread([&] { elsewhere = step(*GetParam().learner(), values, samples).gradient; }).join();
  EXPECT_EQ(elsewhere, first.gradient);
}

TEST_P(LearnerLaw, TheGradientOfAUnionIsTheMeanOfItsPartsWeightedBySamples) {
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

TEST_P(LearnerLaw, OneSampleIsABatchToo) {
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

TEST(Learner, InitialWeightsComeFromTheStreamNamedAfterTheirTensor) {
  const auto learner = models[0].learner();
  Rng rng(4, "initial linear1.weight");
  EXPECT_EQ(initial(*learner, 4)[0], static_cast<float>(std::sqrt(2.0 / 128) * rng.normal()));
}

TEST(Learner, EvaluationCoversEverySampleOnceAcrossChunks) {
  const PictureFormat format{2, 8, 8, 3};
  const LabelledPictures same = random_pictures(format, 150, Rng(2, "same"));
  auto learner = make_learner(models[0].spec, std::make_shared<DataSet>(Pictures(format, same, same)));
  const Values values = initial(**learner);
  const StepResult judged = (*learner)->evaluate(values), trained = step(**learner, values, samples_from(0, 150)).result;
  EXPECT_EQ(judged.samples, 150U);
  EXPECT_EQ(judged.correct, trained.correct);
  EXPECT_NEAR(judged.loss_sum, trained.loss_sum, 1e-3);
}

TEST(Learner, TextIsCountedInSequencesWhenTrainedAndInCharactersWhenJudged) {
  const auto learner = models[5].learner();
  const Values values = initial(*learner);
  const StepResult trained = step(*learner, values, samples_from(0, 4)).result;
  EXPECT_EQ(trained.samples, 4U);
  EXPECT_LE(trained.correct, 4U);
  EXPECT_NEAR(mean_loss(trained), std::log(7.0), 0.3);
  const StepResult judged = learner->evaluate(values);
  EXPECT_EQ(judged.samples, 9U * 6U);
  EXPECT_NEAR(mean_loss(judged), std::log(7.0), 0.3);
}

/// The values of `from` for a model of a shorter context: the same but for the later positions.
Values shortened(const Learner& from, const Values& values, const Learner& to) {
  Values shorter;
  for (std::size_t t = 0; t < from.shape().tensors.size(); ++t) {
    const float* first = values.data() + from.shape().tensors[t].offset;
    shorter.insert(shorter.end(), first, first + to.shape().tensors[t].count);
  }
  return shorter;
}

/// Characters 0 and 1 predict as well before character 2 as without it, so what a longer text adds to the loss is the surprise at
/// its last character alone, and the chances of the 7 possible ones add up to one.
TEST(Learner, ATransformerDoesNotSeeTheFuture) {
  const auto learner_of = [](const Bytes& text) {
    return std::move(make_learner(models[5].spec, std::make_shared<DataSet>(Text{text.size() - 1, 7, text, text})).value());
  };
  const auto longer = learner_of({3, 1, 6, 0}), shorter = learner_of({3, 1, 6});
  Values values(longer->shape().values());
  Rng rng(1, "values");
  for (float& value : values) value = static_cast<float>(0.5 * rng.normal());
  const double shorter_loss = shorter->evaluate(shortened(*longer, values, *shorter)).loss_sum;
  double chances = 0;
  for (std::uint8_t last = 0; last < 7; ++last) chances += std::exp(shorter_loss - learner_of({3, 1, 6, last})->evaluate(values).loss_sum);
  EXPECT_NEAR(chances, 1, 1e-4);
}

/// A convolution of the slow and clear kind: the first channel of the stem's output at every pixel of every sample.
std::vector<double> first_channel_of_stem(const DataSet& data, const std::vector<std::uint32_t>& samples, const float* weight) {
  std::vector<float> inputs(samples.size() * 128);
  std::vector<std::int64_t> targets(samples.size());
  data.gather(Part::training, samples, inputs, targets);
  std::vector<double> outputs;
  for (std::size_t s = 0; s < samples.size(); ++s)
    for (int y = 0; y < 8; ++y)
      for (int x = 0; x < 8; ++x) {
        double sum = 0;
        for (int c = 0; c < 2; ++c)
          for (int dy = 0; dy < 3; ++dy)
            for (int dx = 0; dx < 3; ++dx) {
              const int row = y + dy - 1, column = x + dx - 1;
              if (row < 0 || row > 7 || column < 0 || column > 7) continue;
              sum += static_cast<double>(inputs[s * 128 + static_cast<std::size_t>(c * 64 + row * 8 + column)]) *
                     static_cast<double>(weight[c * 9 + dy * 3 + dx]);
            }
        outputs.push_back(sum);
      }
  return outputs;
}

const Tensor& tensor_named(const Learner& learner, const std::string& name) {
  for (const Tensor& tensor : learner.shape().tensors)
    if (tensor.name == name) return tensor;
  throw Bug("no tensor " + name);
}

TEST(BatchNorm, StatisticsMoveATenthOfTheWayToTheBatch) {
  const auto learner = models[3].learner();
  const auto data = models[3].data();
  const Values values = initial(*learner);
  const auto samples = samples_from(0, 10);
  const Values change = step(*learner, values, samples).gradient;

  const std::vector<double> outputs =
      first_channel_of_stem(*data, samples, values.data() + tensor_named(*learner, "stem.conv.weight").offset);
  double mean = 0, variance = 0;
  const auto n = static_cast<double>(outputs.size());
  for (const double y : outputs) mean += y / n;
  for (const double y : outputs) variance += (y - mean) * (y - mean) / (n - 1);
  EXPECT_NEAR(static_cast<double>(change[tensor_named(*learner, "stem.norm.running_mean").offset]), 0.1 * (mean - 0), 1e-5);
  EXPECT_NEAR(static_cast<double>(change[tensor_named(*learner, "stem.norm.running_var").offset]), 0.1 * (variance - 1), 1e-4);
}

TEST(BatchNorm, EvaluationReadsTheStatisticsAndTrainingTheBatch) {
  const auto learner = models[3].learner();
  const Values values = initial(*learner);
  Values others = values;
  for (std::size_t i = learner->shape().parameters; i < others.size(); ++i) others[i] += 0.5F;
  EXPECT_EQ(step(*learner, values, {0, 1, 2}).result.loss_sum, step(*learner, others, {0, 1, 2}).result.loss_sum);
  EXPECT_NE(learner->evaluate(values).loss_sum, learner->evaluate(others).loss_sum);
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

TEST(Misfit, IsRefusedWithWhatFits) {
  const auto pictures = small_pictures(), text = small_text();
  auto features = load({.kind = "synthetic", .path = {}});
  expect_refused(make_learner({.kind = "transformer", .hidden = {}}, pictures), {"transformer", "2x8x8 pictures", "resnet20"});
  expect_refused(make_learner({.kind = "mlp"}, text), {"mlp", "text", "transformer"});
  expect_refused(make_learner({.kind = "cnn", .hidden = {}}, *features), {"cnn", "16 features", "mlp"});
  expect_refused(make_learner({.kind = "lstm", .hidden = {}}, text), {"lstm", "mlp, cnn, resnet20, vgg11 or transformer"});
  expect_refused(make_learner({.kind = "transformer", .hidden = {}, .width = 10, .heads = 4}, text), {"width = 10, heads = 4", "divide"});
  expect_refused(make_learner({.kind = "mlp", .hidden = {12, 0}}, pictures), {"hidden = [12, 0]"});
  expect_refused(make_learner({.kind = "cnn", .hidden = {}, .width = 0}, pictures), {"width = 0"});
  expect_refused(make_learner({.kind = "mlp", .hidden = {65'536, 65'536}}, pictures), {"values", "at most"});
}

TEST(Backend, SaysWhatItRunsOn) {
  EXPECT_TRUE(available());
  EXPECT_NE(describe_backend().find("libtorch "), std::string::npos);
}

}  // namespace
}  // namespace motley::learn
