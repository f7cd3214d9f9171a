// Properties of single models: published sizes, batch norm, causality, residuals; unsuitable data is refused.
#include "learn/torch/test_models.h"

namespace motley::learn {
namespace {

std::uint64_t parameters_for_cifar10(const std::string& kind, std::uint64_t width) {
  const PictureFormat format{3, 32, 32, 10};
  const LabelledPictures few = random_pictures(format, 2, Rng(1, "few"));
  auto learner = make_learner({.kind = kind, .hidden = {}, .width = width}, std::make_shared<InMemoryDataSet>(Pictures(format, few, few)));
  return (*learner)->shape().parameters;
}

TEST(Models, HaveThePublishedNumbersOfParameters) {
  EXPECT_EQ(parameters_for_cifar10("resnet18", 0), 11'173'962U);  // torchvision's, with a first convolution of 3x3
  EXPECT_EQ(parameters_for_cifar10("resnet20", 16), 269'722U);    // He et al., table 6: 0.27 M; their option A
  EXPECT_EQ(parameters_for_cifar10("vgg11", 64),
            9'228'362U);  // the usual 9,231,114 of the 32x32 version, minus the biases before batch norm
}

TEST(Models, AResidualUnitPassesItsInputOn) {
  const auto learner = models[3].learner();
  Values values = initial(*learner);
  for (const Tensor& tensor : learner->shape().tensors)
    if (tensor.name.find("norm2.weight") != std::string::npos)
      std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(tensor.offset), tensor.count, 0.0F);
  const Tensor stem = tensor_named(*learner, "stem.conv.weight");
  const Values gradient = step(*learner, values, {0, 1, 2}).gradient;
  EXPECT_GT(norm(std::span(gradient).subspan(stem.offset, stem.count)), 1e-3);
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

/// Character 2 must not change the predictions for characters 0 and 1. So a longer text adds to the loss only -log p of its last character,
/// and the probabilities p of the 7 possible characters add up to one.
TEST(Learner, Transformer_does_not_see_later_characters) {
  const auto learner_of = [](const Bytes& text) {
    return std::move(make_learner(models[5].spec, std::make_shared<InMemoryDataSet>(Text{text.size() - 1, 7, text, text})).value());
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

/// A convolution by loops: the first channel of the stem's output at every pixel of every sample.
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

TEST(BatchNorm, Statistics_change_by_a_tenth_of_their_distance_to_the_batch) {
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

TEST(BatchNorm, Evaluation_uses_statistics_and_training_the_batch) {
  const auto learner = models[3].learner();
  const Values values = initial(*learner);
  Values others = values;
  for (std::size_t i = learner->shape().parameters; i < others.size(); ++i) others[i] += 0.5F;
  EXPECT_EQ(step(*learner, values, {0, 1, 2}).result.loss_sum, step(*learner, others, {0, 1, 2}).result.loss_sum);
  EXPECT_NE(learner->evaluate(values).loss_sum, learner->evaluate(others).loss_sum);
}

TEST(Misfit, Refused_with_a_model_that_fits) {
  const auto pictures = small_pictures(), text = small_text();
  auto features = load({.kind = "synthetic", .path = {}});
  expect_refused(make_learner({.kind = "transformer", .hidden = {}}, pictures), {"transformer", "2x8x8 pictures", "resnet20"});
  expect_refused(make_learner({.kind = "mlp"}, text), {"mlp", "text", "transformer"});
  expect_refused(make_learner({.kind = "cnn", .hidden = {}}, *features), {"cnn", "16 features", "mlp"});
  expect_refused(make_learner({.kind = "lstm", .hidden = {}}, text), {"lstm", "mlp, cnn, resnet18, resnet20, vgg11", "transformer"});
  expect_refused(make_learner({.kind = "transformer", .hidden = {}, .width = 10, .heads = 4}, text), {"width = 10, heads = 4", "divide"});
  expect_refused(make_learner({.kind = "mlp", .hidden = {12, 0}}, pictures), {"hidden = [12, 0]"});
  expect_refused(make_learner({.kind = "mlp", .hidden = {65'536, 65'536}}, pictures), {"values", "at most"});
}

}  // namespace
}  // namespace motley::learn
