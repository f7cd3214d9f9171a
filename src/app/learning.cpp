#include "app/learning.h"

#include <new>
#include <string_view>

namespace motley::app {
namespace {

store::Loss loss(const learn::StepResult& r) { return {r.loss_sum, r.correct, r.samples, r.squared_norm, r.coded, r.residual}; }

/// A device's walk as the store sees it.
class Walking final : public store::LocalSteps {
 public:
  explicit Walking(learn::Walk& walk) : walk_(walk) {}
  void begin(std::span<const float> values) override {
    at_border([&] { walk_.begin(values); });
  }
  void put(std::uint64_t first, std::span<const float> values) override {
    at_border([&] { walk_.put(first, values); });
  }
  void put_late(std::uint64_t first, std::span<const float> values, double keeps) override {
    at_border([&] { walk_.put_late(first, values, keeps); });
  }
  void set_out() override {
    at_border([&] { walk_.set_out(); });
  }
  void merge(std::uint64_t first, std::span<const float> values, double keeps) override {
    at_border([&] { walk_.merge(first, values, keeps); });
  }
  void step(std::span<const std::uint32_t> samples, const Rule& rule) override {
    at_border([&] { walk_.step(samples, {rule.rate, rule.momentum, rule.weight_decay}); });
  }
  void watch() override {
    at_border([&] { walk_.watch(); });
  }
  [[nodiscard]] double moved() const override { return walk_.moved(); }
  store::Loss way(std::span<float> out, const Coding* coding) override {
    return at_border([&] { return loss(walk_.way(out, coding)); });
  }

 private:
  learn::Walk& walk_;
};

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

store::LocalSteps* Learning::local_steps() {
  if (!local_steps_)
    if (learn::Walk* walk = at_border([&] { return learner_->walk(); })) local_steps_ = std::make_unique<Walking>(*walk);
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

store::Cadence cadence(Learning& learning, const store::Layout& layout) {
  std::vector<double> work;
  for (const learn::BlockProfile& block : learning.profile()) work.push_back(block.work);
  std::vector<std::uint32_t> blocks;
  for (const learn::Tensor& tensor : learning.shape().tensors) blocks.push_back(tensor.block);
  return store::cadence(layout, places(learning.shape()), blocks, work);
}

std::vector<store::NamedTensor> named(const learn::ModelShape& shape) {
  std::vector<store::NamedTensor> result;
  for (const learn::Tensor& tensor : shape.tensors) result.push_back({tensor.name, tensor.shape, tensor.offset});
  return result;
}

}  // namespace motley::app
