// The learner on the CPU, and the factories of all learners.
#include "learn/learner.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "learn/constants.h"
#include "learn/dataset.h"
#include "learn/torch/backend.h"
#include "learn/torch/batch.h"
#include "learn/torch/device_learner.h"
#include "learn/torch/errors.h"
#include "learn/torch/learners.h"
#include "learn/torch/models.h"
#include "learn/torch/network.h"

namespace motley::learn {

namespace {

/// Samples of one forward.
std::size_t evaluation_chunk(const SampleShape& shape) {
  if (!shape.text) return evaluation_samples;
  return static_cast<std::size_t>(std::clamp<std::int64_t>(evaluation_characters / shape.context, 1, evaluation_samples));
}

class TorchLearner final : public Learner {
 public:
  using MakeNetwork = std::unique_ptr<Network> (*)(Model&);
  TorchLearner(Model model, MakeNetwork make_network, std::shared_ptr<const DataSet> data)
      : model_(std::move(model)), network_(make_network(model_)), data_(std::move(data)), batch_(data_->shape()) {
    const at::Tensor sample = batch_.blank();
    activation_bytes_ = network_->activation_bytes_per_sample(sample) + sample.nbytes();
  }

  const ModelShape& shape() const override { return model_.shape; }
  std::uint64_t activation_bytes_per_sample() const override { return activation_bytes_; }

  std::vector<BlockProfile> profile() override {
    std::vector<BlockProfile> blocks = network_->profile(batch_.blank());
    for (std::size_t b = 0; b < blocks.size(); ++b) blocks[b].name = model_.blocks[b]->name();
    for (const Tensor& tensor : shape().tensors)
      if (tensor.kind == TensorKind::parameter) blocks[tensor.block].parameters += tensor.count;
    return blocks;
  }

  void initialize(std::uint64_t seed, std::span<float> values) override {
    check(values.size() == shape().values(), "values has room for the whole model");
    translate_errors([&] { fill_initial(model_, seed, values); });
  }

  using Learner::gradient;
  StepResult gradient(std::span<const float> values, std::span<const std::uint32_t> samples, std::span<float> out, StepIo& io) override {
    return translate_errors([&] { return run(values, samples, out, io); });
  }

  StepResult evaluate(std::span<const float> values) override {
    return translate_errors([&] { return run_evaluation(values); });
  }

 private:
  StepResult run(std::span<const float> values, std::span<const std::uint32_t> samples, std::span<float> out, StepIo& io) {
    check(!samples.empty(), "a gradient is taken over a sample or more");
    check(values.size() == shape().values() && out.size() == values.size(), "values and out hold the whole model");
    batch_.gather(*data_, Part::training, samples);
    const at::Tensor logits = network_->forward(values, batch_.inputs, Mode::training, io);
    if (!logits.defined()) return {};  // `io` gave up
    if (!logits_gradient_.defined() || logits_gradient_.sizes() != logits.sizes()) logits_gradient_ = at::empty(logits.sizes());
    const Score score = model_.loss->on_host(logits, batch_.targets, logits_gradient_);
    network_->backward(logits_gradient_, out, io);
    return per_sample(score, samples.size());
  }

  StepResult run_evaluation(std::span<const float> values) {
    check(values.size() == shape().values(), "values holds the whole model");
    const std::uint64_t all = data_->size(Part::evaluation);
    NoStreaming no_streaming;
    std::vector<std::uint32_t> chunk(evaluation_chunk(data_->shape()));
    StepResult result;
    for (std::uint64_t first = 0; first < all; first += chunk.size()) {
      chunk.resize(std::min<std::uint64_t>(chunk.size(), all - first));
      std::iota(chunk.begin(), chunk.end(), static_cast<std::uint32_t>(first));
      batch_.gather(*data_, Part::evaluation, chunk);
      const at::Tensor logits = network_->forward(values, batch_.inputs, Mode::evaluation, no_streaming);
      const Score score = model_.loss->on_host(logits, batch_.targets, {});
      result.loss_sum += score.loss_sum;
      result.correct += score.hits;
      result.samples += static_cast<std::uint64_t>(batch_.targets.numel());
    }
    return result;
  }

  /// See per_sample() of device_learner.h.
  [[nodiscard]] StepResult per_sample(const Score& score, std::uint64_t samples) const {
    const auto targets = static_cast<std::uint64_t>(data_->shape().targets());
    return {score.loss_sum / static_cast<double>(targets), (score.hits + targets / 2) / targets, samples};
  }

  Model model_;
  std::unique_ptr<Network> network_;
  std::shared_ptr<const DataSet> data_;
  Batch batch_;
  std::uint64_t activation_bytes_ = 0;  // of one sample
  at::Tensor logits_gradient_;
};

/// `make` makes a learner of a model.
template <class Make>
Result<std::unique_ptr<Learner>> learner_of(const ModelSpec& spec, const std::shared_ptr<const DataSet>& data, Make make) {
  auto model = make_model(spec, data->shape());
  if (!model) return model.error();
  const std::uint64_t values = model->shape.values();
  try {
    return std::unique_ptr<Learner>(make(std::move(*model)));
  } catch (const std::exception& failure) {  // of torch: memory, mostly
    return world_failed(fmt::format("cannot make the model \"{}\" of {} values: torch says: {}", spec.kind, values, failure.what()));
  }
}

std::unique_ptr<Network> dense(Model& model) { return dense_network(model.shape); }

Result<std::unique_ptr<Learner>> on_cpu(const ModelSpec& spec, const std::shared_ptr<const DataSet>& data,
                                        TorchLearner::MakeNetwork make_network) {
  return learner_of(spec, data, [&](Model model) { return std::make_unique<TorchLearner>(std::move(model), make_network, data); });
}

Result<std::unique_ptr<Learner>> on_device(const ModelSpec& spec, const std::shared_ptr<const DataSet>& data, at::Device device) {
  return learner_of(spec, data, [&](Model model) {
    Measured measured;
    auto on_host = on_cpu(spec, data, graph_network);
    if (on_host) measured = {(*on_host)->activation_bytes_per_sample(), (*on_host)->profile()};
    return device_learner(std::move(model), std::move(measured), data, device, spec.precision == "bf16");
  });
}

}  // namespace

Result<std::unique_ptr<Learner>> make_learner(const ModelSpec& spec, std::shared_ptr<const DataSet> data) {
  return on_cpu(spec, data, spec.kind == "mlp" ? dense : graph_network);
}

Result<std::unique_ptr<Learner>> make_learner(const ModelSpec& spec, std::shared_ptr<const DataSet> data, const Place& place) {
  if (!place.cuda) return make_learner(spec, std::move(data));
  if (place.index >= gpus())
    return bad_input(
        fmt::format("device: found cuda:{}, expected a GPU that torch can use: {}; choose a cpu, or build against a torch "
                    "with CUDA on a machine that has one",
                    place.index, gpus() == 0 ? "there is none" : fmt::format("there are {}, counted from 0", gpus())));
  use_precision(spec.precision);
  return on_device(spec, data, at::Device(at::kCUDA, static_cast<at::DeviceIndex>(place.index)));
}

Result<std::unique_ptr<Learner>> make_autograd_learner(const ModelSpec& spec, std::shared_ptr<const DataSet> data) {
  return on_cpu(spec, data, graph_network);
}

Result<std::unique_ptr<Learner>> make_device_learner(const ModelSpec& spec, std::shared_ptr<const DataSet> data) {
  return on_device(spec, data, at::kCPU);
}

}  // namespace motley::learn
