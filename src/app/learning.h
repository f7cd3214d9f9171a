// A learner as both worlds see it: a source of gradients. And a model's tensors as the store sees them.
#pragma once
#include <memory>
#include <vector>

#include "learn/learner.h"
#include "store/gradient_source.h"
#include "store/layout.h"
#include "store/safetensors.h"

namespace motley::app {

class Learning : public store::GradientSource {
 public:
  explicit Learning(std::unique_ptr<learn::Learner> learner) : learner_(std::move(learner)) {}
  [[nodiscard]] const learn::ModelShape& shape() const { return learner_->shape(); }
  [[nodiscard]] std::uint64_t activation_bytes_per_sample() const { return learner_->activation_bytes_per_sample(); }
  void initialize(std::uint64_t seed, std::span<float> values) override { learner_->initialize(seed, values); }
  store::Loss gradient(std::span<const float> values, std::span<const std::uint32_t> samples, std::span<float> out, Flow& flow) override {
    return loss(learner_->gradient(values, samples, out, flow));
  }
  store::Loss evaluate(std::span<const float> values) override { return loss(learner_->evaluate(values)); }

 private:
  static store::Loss loss(const learn::StepResult& r) { return {r.loss_sum, r.correct, r.samples}; }
  std::unique_ptr<learn::Learner> learner_;
};

[[nodiscard]] std::vector<store::TensorPlace> places(const learn::ModelShape& shape);
/// With their names, as a file has them.
[[nodiscard]] std::vector<store::NamedTensor> named(const learn::ModelShape& shape);

}  // namespace motley::app
