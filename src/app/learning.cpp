#include "app/learning.h"

namespace motley::app {
namespace {

/// The border to torch's exceptions while it computes.
template <class Deed>
auto at_border(Deed deed) {
  try {
    return deed();
  } catch (const Bug&) {
    throw;
  } catch (const std::exception& failure) {
    throw LearnerFailed(failure.what());
  }
}

store::Loss loss(const learn::StepResult& r) { return {r.loss_sum, r.correct, r.samples}; }

}  // namespace

void Learning::initialize(std::uint64_t seed, std::span<float> values) {
  at_border([&] { learner_->initialize(seed, values); });
}

store::Loss Learning::gradient(std::span<const float> values, std::span<const std::uint32_t> samples, std::span<float> out, Flow& flow) {
  return at_border([&] { return loss(learner_->gradient(values, samples, out, flow)); });
}

store::Loss Learning::evaluate(std::span<const float> values) {
  return at_border([&] { return loss(learner_->evaluate(values)); });
}

std::vector<store::TensorPlace> places(const learn::ModelShape& shape) {
  std::vector<store::TensorPlace> result;
  for (const learn::Tensor& tensor : shape.tensors)
    result.push_back({tensor.offset, tensor.count,
                      tensor.kind == learn::TensorKind::parameter ? store::SliceKind::parameter : store::SliceKind::statistic});
  return result;
}

std::vector<store::NamedTensor> named(const learn::ModelShape& shape) {
  std::vector<store::NamedTensor> result;
  for (const learn::Tensor& tensor : shape.tensors) result.push_back({tensor.name, tensor.shape, tensor.offset});
  return result;
}

}  // namespace motley::app
