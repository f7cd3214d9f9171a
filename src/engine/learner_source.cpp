#include "engine/learner_source.h"

#include <new>
#include <string_view>

namespace motley::engine {
namespace {

store::Loss loss(const learn::StepResult& r) { return {r.loss_sum, r.correct, r.samples, r.squared_norm, r.coded, r.residual}; }

/// A device's walk as the store sees it.
class Walking final : public store::LocalSgd {
 public:
  explicit Walking(learn::LocalSgd& local_sgd) : local_sgd_(local_sgd) {}
  void begin(std::span<const float> values) override {
    translate_errors([&] { local_sgd_.begin(values); });
  }
  void put(std::uint64_t first, std::span<const float> values) override {
    translate_errors([&] { local_sgd_.put(first, values); });
  }
  void put_stale(std::uint64_t first, std::span<const float> values, double kept_fraction) override {
    translate_errors([&] { local_sgd_.put_stale(first, values, kept_fraction); });
  }
  void begin_round() override {
    translate_errors([&] { local_sgd_.begin_round(); });
  }
  void merge(std::uint64_t first, std::span<const float> values, double kept_fraction) override {
    translate_errors([&] { local_sgd_.merge(first, values, kept_fraction); });
  }
  void step(std::span<const std::uint32_t> samples, const Rule& rule) override {
    translate_errors([&] { local_sgd_.step(samples, {rule.rate, rule.momentum, rule.weight_decay}); });
  }
  void watch() override {
    translate_errors([&] { local_sgd_.watch(); });
  }
  [[nodiscard]] double update_norm() const override { return local_sgd_.update_norm(); }
  store::Loss delta(std::span<float> out, const GradientEncoding* coding) override {
    return translate_errors([&] { return loss(local_sgd_.delta(out, coding)); });
  }

 private:
  learn::LocalSgd& local_sgd_;
};

}  // namespace

void LearnerSource::initialize(std::uint64_t seed, std::span<float> values) {
  translate_errors([&] { learner_->initialize(seed, values); });
}

store::Loss LearnerSource::gradient(std::span<const float> values, std::span<const std::uint32_t> samples, std::span<float> out,
                                    StepIo& io) {
  return translate_errors([&] { return loss(learner_->gradient(values, samples, out, io)); });
}

store::Loss LearnerSource::evaluate(std::span<const float> values) {
  return translate_errors([&] { return loss(learner_->evaluate(values)); });
}

store::LocalSgd* LearnerSource::local_steps() {
  if (!local_steps_)
    if (learn::LocalSgd* local_sgd = translate_errors([&] { return learner_->local_sgd(); }))
      local_steps_ = std::make_unique<Walking>(*local_sgd);
  return local_steps_.get();
}

namespace {

constexpr std::uint64_t small_tensor = 256;  // values: what it would save is nothing
constexpr double cheap_part = 0.25;          // of the model

/// Biases, norms and tiny tensors travel as they are. The first and the last layer get at least 8 bits where they are a small part of the
/// model; where one of them is most of it, that would be the precision of everything.
std::uint8_t least_bits(const learn::Tensor& tensor, const learn::ModelShape& shape, std::uint64_t edges) {
  if (tensor.kind == learn::TensorKind::statistic || tensor.shape.size() < 2 || tensor.count < small_tensor) return 32;
  const bool edge = tensor.block == 0 || tensor.block + 1 == shape.blocks;
  return edge && static_cast<double>(edges) <= cheap_part * static_cast<double>(shape.parameters) ? 8 : 2;
}

}  // namespace

std::vector<store::TensorPlace> places(const learn::ModelShape& shape) {
  std::uint64_t edges = 0;
  for (const learn::Tensor& tensor : shape.tensors)
    if (tensor.block == 0 || tensor.block + 1 == shape.blocks) edges += tensor.count;
  std::vector<store::TensorPlace> result;
  for (const learn::Tensor& tensor : shape.tensors)
    result.push_back({tensor.offset, tensor.count,
                      tensor.kind == learn::TensorKind::parameter ? store::SliceKind::parameter : store::SliceKind::statistic,
                      least_bits(tensor, shape, edges)});
  return result;
}

store::LayerTiming layer_timing(LearnerSource& learning, const store::Layout& layout) {
  std::vector<double> work;
  for (const learn::BlockProfile& block : learning.profile()) work.push_back(block.work);
  std::vector<std::uint32_t> blocks;
  for (const learn::Tensor& tensor : learning.shape().tensors) blocks.push_back(tensor.block);
  return store::layer_timing(layout, places(learning.shape()), blocks, work);
}

runtime::ModelTensors model_tensors(const learn::ModelShape& shape) {
  runtime::ModelTensors model{.tensors = {}, .parameters = shape.parameters, .values = shape.values()};
  for (const learn::Tensor& tensor : shape.tensors) model.tensors.push_back({tensor.name, tensor.shape, tensor.offset});
  return model;
}

}  // namespace motley::engine
