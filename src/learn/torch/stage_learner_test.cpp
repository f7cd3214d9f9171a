// A model cut into stages has the loss and the gradient of the whole model, for every cut.
#include "learn/stage_learner.h"

#include "learn/torch/learners.h"
#include "learn/torch/test_models.h"

namespace motley::learn {
namespace {

/// All stages of a model, called in order.
struct Cut {
  Cut(const Example& example, const std::vector<std::uint32_t>& first_blocks)
      : whole(make_autograd_learner(example.spec, example.data()).value()),
        stages(make_stages(example.spec, example.data(), first_blocks).value()) {}

  /// The stage's values, copied from the whole model's.
  [[nodiscard]] Values piece(std::size_t s, const Values& all) const {
    Values values(stages[s]->shape().values());
    for (const Tensor& tensor : stages[s]->shape().tensors) {
      const Tensor& from = tensor_named(*whole, tensor.name);
      std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(from.offset), from.count,
                  values.begin() + static_cast<std::ptrdiff_t>(tensor.offset));
    }
    return values;
  }

  Step step(const Values& all, const std::vector<std::uint32_t>& samples) {
    Step taken{{}, Values(all.size())};
    std::vector<Values> values;
    Activation passed;
    for (std::size_t s = 0; s < stages.size(); ++s) values.push_back(piece(s, all));
    for (std::size_t s = 0; s < stages.size(); ++s) {
      Activation out;
      taken.result = stages[s]->forward(7, values[s], samples, passed, out);
      passed = out;
    }
    for (std::size_t s = stages.size(); s-- > 0;) {
      Activation out;
      stages[s]->input_gradient(7, passed, out);
      passed = out;
    }
    for (std::size_t s = 0; s < stages.size(); ++s) {
      Values gradient(values[s].size());
      stages[s]->weight_gradient(7, 1, gradient);
      for (const Tensor& tensor : stages[s]->shape().tensors)
        std::copy_n(gradient.begin() + static_cast<std::ptrdiff_t>(tensor.offset), tensor.count,
                    taken.gradient.begin() + static_cast<std::ptrdiff_t>(tensor_named(*whole, tensor.name).offset));
    }
    return taken;
  }
  std::unique_ptr<Learner> whole;
  std::vector<std::unique_ptr<StageLearner>> stages;
};

class Stages : public testing::TestWithParam<Example> {};

TEST_P(Stages, Give_the_same_gradient_for_every_cut) {
  use_threads(1);
  const std::uint32_t blocks = GetParam().learner()->shape().blocks;
  std::vector<std::uint32_t> each(blocks);
  for (std::uint32_t b = 0; b < blocks; ++b) each[b] = b;
  const std::vector<std::uint32_t> samples{0, 3, 5};
  for (const auto& first_blocks : {std::vector<std::uint32_t>{0}, each}) {
    Cut cut(GetParam(), first_blocks);
    const Values values = initial(*cut.whole);
    const Step whole = step(*cut.whole, values, samples);
    const Step stages = cut.step(values, samples);
    EXPECT_EQ(stages.gradient, whole.gradient) << first_blocks.size() << " stages";
    EXPECT_EQ(stages.result.loss_sum, whole.result.loss_sum);
    EXPECT_EQ(stages.result.correct, whole.result.correct);
  }
}

TEST_P(Stages, Keep_micro_batches_separate) {
  use_threads(1);
  Cut cut(GetParam(), {0});
  StageLearner& stage = *cut.stages.front();
  const Values values = initial(*cut.whole);
  Values later = values;
  for (float& value : later) value *= 0.9F;
  Activation none;
  Activation out;
  stage.forward(1, values, std::vector<std::uint32_t>{0, 1}, none, out);
  stage.forward(2, later, std::vector<std::uint32_t>{2, 3}, none, out);
  Values second(values.size());
  stage.input_gradient(2, none, out);
  stage.weight_gradient(2, 1, second);
  Values first(values.size());
  stage.input_gradient(1, none, out);
  stage.weight_gradient(1, 1, first);
  EXPECT_EQ(first, step(*cut.whole, values, {0, 1}).gradient);
  EXPECT_EQ(second, step(*cut.whole, later, {2, 3}).gradient);
}

INSTANTIATE_TEST_SUITE_P(Each, Stages, testing::ValuesIn(models), [](const auto& model) { return model.param.name; });

}  // namespace
}  // namespace motley::learn
