// Data sets as other modules see them: loaded by kind, counted, refused with a remedy.
#include "learn/data.h"

#include <cmath>

#include "learn/dataset.h"
#include "learn/registry.h"
#include "learn/test_files.h"
#include "learn/test_samples.h"

namespace motley::learn {
namespace {

std::vector<float> gathered(const DataSet& data, Part part, const std::vector<std::uint32_t>& samples) {
  std::vector<float> inputs(samples.size() * static_cast<std::size_t>(data.shape().inputs()));
  std::vector<std::int64_t> targets(samples.size());
  data.gather(part, samples, inputs, targets);
  return inputs;
}

DataSpec synthetic(std::uint64_t seed) { return {.kind = "synthetic", .path = {}, .samples = 1000, .seed = seed}; }

TEST(Synthetic, TheSameSeedGivesTheSameSamples) {
  const auto first = load(synthetic(5)), second = load(synthetic(5)), other = load(synthetic(6));
  const auto samples = samples_from(0, 100);
  EXPECT_EQ(gathered(**first, Part::training, samples), gathered(**second, Part::training, samples));
  EXPECT_NE(gathered(**first, Part::training, samples), gathered(**other, Part::training, samples));
}

TEST(Synthetic, Test_samples_are_a_quarter_as_many_and_different) {
  const auto data = load(synthetic(5));
  EXPECT_EQ(training_samples(**data), 1000U);
  EXPECT_EQ((*data)->size(Part::evaluation), 250U);
  EXPECT_NE(gathered(**data, Part::training, {0}), gathered(**data, Part::evaluation, {0}));
}

TEST(Synthetic, ValidationSamplesAreTheLastTenthOfTheTrainingSet) {
  DataSpec spec = synthetic(5);
  const auto whole = load(spec);
  spec.evaluate = "validation";
  const auto split = load(spec);
  EXPECT_EQ(training_samples(**split), 900U);
  EXPECT_EQ((*split)->size(Part::evaluation), 100U);
  EXPECT_EQ(gathered(**whole, Part::training, samples_from(900, 100)), gathered(**split, Part::evaluation, samples_from(0, 100)));
}

TEST(Synthetic, EveryClassOccurs) {
  const auto data = load(synthetic(5));
  std::vector<float> inputs(1000 * 16);
  std::vector<std::int64_t> targets(1000);
  (*data)->gather(Part::training, samples_from(0, 1000), inputs, targets);
  for (const std::int64_t label : {0, 1, 2, 3}) EXPECT_GT(std::count(targets.begin(), targets.end(), label), 50) << "class " << label;
}

TEST(Synthetic, SizesOutOfBoundsAreRefused) {
  expect_refused(load({.kind = "synthetic", .path = {}, .classes = 1}), {"classes = 1", "2 to 65536"});
  expect_refused(load({.kind = "synthetic", .path = {}, .features = 0}), {"features = 0"});
  expect_refused(load({.kind = "synthetic", .path = {}, .samples = 9}), {"samples = 9", "10 to"});
  expect_refused(load({.kind = "synthetic", .path = {}, .samples = std::uint64_t{1} << 60}), {"samples = 1152921504606846976"});
}

TEST(Pictures, Normalised_per_channel_by_the_training_set) {
  const auto data = small_pictures(200);
  const std::vector<float> inputs = gathered(*data, Part::training, samples_from(0, 200));
  for (const std::size_t channel : {0, 1}) {
    double sum = 0, squares = 0;
    for (std::size_t s = 0; s < 200; ++s)
      for (std::size_t p = 0; p < 64; ++p) {
        const auto x = static_cast<double>(inputs[s * 128 + channel * 64 + p]);
        sum += x;
        squares += x * x;
      }
    EXPECT_NEAR(sum / 12'800, 0, 1e-5);
    EXPECT_NEAR(squares / 12'800, 1, 1e-5);
  }
}

TEST(Pictures, AChannelOfOneValueBecomesZeros) {
  const PictureFormat format{1, 1, 2, 2};
  const InMemoryDataSet data(Pictures(format, {{7, 7, 7, 7}, {0, 1}}, {{7, 7}, {0}}));
  EXPECT_EQ(gathered(data, Part::training, {0, 1}), std::vector<float>(4, 0));
}

TEST(Pictures, ASampleBeyondThePartIsOurBug) {
  const auto data = small_pictures(8);
  EXPECT_THROW(gathered(*data, Part::training, {8}), Bug);
}

TEST(FashionMnist, Has_60000_pictures_in_the_folder_of_the_Debian_package) {
  if (!std::filesystem::exists("/usr/share/datasets/fashion-mnist")) GTEST_SKIP() << "the package dataset-fashion-mnist is not installed";
  const auto data = load({});
  ASSERT_TRUE(data.ok()) << data.error().message;
  EXPECT_EQ(training_samples(**data), 60'000U);
  EXPECT_EQ((*data)->size(Part::evaluation), 10'000U);
  EXPECT_EQ(describe((*data)->shape()), "1x28x28 pictures of 10 classes");
}

TEST(FashionMnist, WithoutItsFilesNamesThePackage) {
  const Folder folder;
  expect_refused(load({.path = folder.path()}), {"train-images-idx3-ubyte", "no such file", "apt-get install dataset-fashion-mnist"});
}

TEST(DataSets, An_unknown_kind_is_refused_with_the_known_ones) {
  expect_refused(load({.kind = "imagenet", .path = {}}), {"imagenet", "fashion-mnist", "cifar10", "text", "synthetic"});
}

/// One feature: the sample's index.
class Indices final : public DataSet {
 public:
  [[nodiscard]] SampleShape shape() const override { return {.channels = 1, .height = 1, .width = 1, .classes = 2}; }
  [[nodiscard]] std::uint64_t size(Part) const override { return 6; }
  [[nodiscard]] std::vector<std::uint32_t> labels(Part) const override { return {0, 1, 0, 1, 0, 1}; }
  using DataSet::gather;
  void gather(Part, std::span<const std::uint32_t> samples, std::span<float> inputs, std::span<std::int64_t> targets) const override {
    for (std::size_t s = 0; s < samples.size(); ++s) {
      inputs[s] = static_cast<float>(samples[s]);
      targets[s] = samples[s] % 2;
    }
  }
};

TEST(DataSets, A_registered_data_set_is_loaded_by_its_name) {
  data_sets().add("indices", [](const DataSpec&, EvaluateOn) { return std::shared_ptr<const DataSet>(std::make_shared<Indices>()); });
  const auto data = load({.kind = "indices", .path = {}});
  ASSERT_TRUE(data.ok()) << data.error().message;
  EXPECT_EQ(gathered(**data, Part::training, {4, 1}), (std::vector<float>{4, 1}));
  expect_refused(load({.kind = "imagenet", .path = {}}), {"noise or indices"});
}

TEST(DataSets, An_unknown_split_is_refused) {
  expect_refused(load({.kind = "synthetic", .path = {}, .evaluate = "train"}), {"\"train\"", "\"test\" or \"validation\""});
}

TEST(DataSets, Kinds_without_a_default_folder_ask_for_the_path) {
  for (const char* kind : {"mnist", "cifar10", "cifar100", "text"}) expect_refused(load({.kind = kind, .path = {}}), {kind, "[data] path"});
}

}  // namespace
}  // namespace motley::learn
