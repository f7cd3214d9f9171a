// Models and losses that a program registers train like the built-in ones.
#include "learn/registry.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "learn/learner.h"
#include "learn/test_samples.h"
#include "learn/torch/learners.h"
#include "learn/torch/models.h"

namespace motley::learn {
namespace {

std::vector<float> gradient_of(Learner& learner) {
  std::vector<float> values(learner.shape().values()), out(values.size());
  learner.initialize(1, values);
  EXPECT_GT(learner.gradient(values, samples_from(0, 8), out).loss_sum, 0);
  EXPECT_EQ(learner.evaluate(values).samples, 150U);
  return out;
}

at::Tensor mean_cross_entropy(const at::Tensor& outputs, const at::Tensor& targets) {
  return at::log_softmax(outputs, 1).gather(1, targets.unsqueeze(1)).mean().neg();
}

TEST(Registry, A_registered_loss_trains_on_the_host_and_on_a_device) {
  losses().add("twin", [] { return autograd_loss(mean_cross_entropy); });
  for (auto* make : {&make_autograd_learner, &make_device_learner}) {
    const auto expected = gradient_of(**(*make)({.hidden = {5}}, small_pictures()));
    const auto found = gradient_of(**(*make)({.hidden = {5}, .loss = "twin"}, small_pictures()));
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6) << i;
  }
}

TEST(Registry, A_registered_model_is_made_by_its_name) {
  models().add("one-layer", [](const ModelSpec&, const SampleShape& data) -> Result<Blocks> { return mlp({.hidden = {}}, data); });
  auto learner = make_learner({.kind = "one-layer"}, small_pictures());
  ASSERT_TRUE(learner.ok()) << learner.error().message;
  EXPECT_EQ(gradient_of(**learner), gradient_of(**make_learner({.kind = "mlp", .hidden = {}}, small_pictures())));
}

TEST(Registry, An_unknown_loss_is_refused_with_the_known_ones) {
  const auto learner = make_learner({.loss = "hinge"}, small_pictures());
  ASSERT_FALSE(learner.ok());
  EXPECT_NE(learner.error().message.find("loss = \"hinge\", expected cross-entropy"), std::string::npos) << learner.error().message;
}

}  // namespace
}  // namespace motley::learn
