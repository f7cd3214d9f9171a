// Stages with torch's autograd. Backward runs twice over the graph of a micro-batch: for the gradient of the input, and later for that of
// the parameters, which are views of the caller's values at the time of forward.
#include "learn/stage_learner.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <map>

#include "base/check.h"
#include "learn/torch/batch.h"
#include "learn/torch/errors.h"
#include "learn/torch/models.h"

namespace motley::learn {
namespace {

Activation activation_of(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous();
  const auto values = span_of<float>(flat);
  return {{values.begin(), values.end()}, flat.sizes().vec()};
}

at::Tensor tensor_of(const Activation& activation) {
  return at::from_blob(const_cast<float*>(activation.values.data()), activation.shape, at::kFloat).clone();
}

class TorchStage final : public StageLearner {
 public:
  TorchStage(Model model, std::shared_ptr<const DataSet> data, bool first, bool last)
      : model_(std::move(model)), data_(std::move(data)), batch_(data_->shape()), first_(first), last_(last) {}

  const ModelShape& shape() const override { return model_.shape; }

  StepResult forward(std::uint64_t micro, std::span<const float> values, std::span<const std::uint32_t> samples, const Activation& input,
                     Activation& output) override {
    return translate_errors([&] { return run_forward(micro, values, samples, input, output); });
  }
  void input_gradient(std::uint64_t micro, const Activation& output_gradient, Activation& input_gradient) override {
    translate_errors([&] { run_input_gradient(micro, output_gradient, input_gradient); });
  }
  void weight_gradient(std::uint64_t micro, double scale, std::span<float> out) override {
    translate_errors([&] { run_weight_gradient(micro, scale, out); });
  }

 private:
  StepResult run_forward(std::uint64_t micro, std::span<const float> values, std::span<const std::uint32_t> samples,
                         const Activation& input, Activation& output) {
    check(values.size() == shape().values(), "values holds the whole stage");
    const c10::AutoGradMode graph(true);
    MicroBatch& micro_batch = micro_batches_[micro];
    bind(values, micro_batch);
    if (first_ || last_) batch_.gather(*data_, Part::training, samples);
    micro_batch.input = first_ ? batch_.inputs.clone() : tensor_of(input).requires_grad_(true);
    at::Tensor x = micro_batch.input;
    for (const auto& block : model_.blocks) x = block->forward(x, Mode::training);
    micro_batch.output = x;
    output = {};
    if (!last_) {
      output = activation_of(x.detach());
      return {};
    }
    const at::Tensor logits = x.detach().contiguous();
    micro_batch.output_gradient = at::empty(logits.sizes());
    const Score score = model_.loss->on_host(logits, batch_.targets, micro_batch.output_gradient);
    const auto targets = static_cast<std::uint64_t>(data_->shape().targets());
    return {score.loss_sum / static_cast<double>(targets), (score.hits + targets / 2) / targets, samples.size()};
  }

  void run_input_gradient(std::uint64_t micro, const Activation& output_gradient, Activation& input_gradient) {
    MicroBatch& micro_batch = micro_batches_.at(micro);
    if (!last_) micro_batch.output_gradient = tensor_of(output_gradient);
    input_gradient = {};
    if (first_) return;
    const std::vector<at::Tensor> wanted{micro_batch.input};
    micro_batch.output.backward(micro_batch.output_gradient, /*retain_graph=*/true, /*create_graph=*/false, at::TensorList(wanted));
    input_gradient = activation_of(micro_batch.input.grad());
  }

  void run_weight_gradient(std::uint64_t micro, double scale, std::span<float> out) {
    check(out.size() == shape().values(), "out holds the whole stage");
    MicroBatch& micro_batch = micro_batches_.at(micro);
    if (!micro_batch.parameters.empty())
      micro_batch.output.backward(micro_batch.output_gradient, /*retain_graph=*/false, /*create_graph=*/false,
                                  at::TensorList(micro_batch.parameters));
    const auto factor = static_cast<float>(scale);
    std::size_t parameter = 0;
    std::size_t statistic = 0;
    for (const Tensor& tensor : shape().tensors) {
      const bool learned = tensor.kind == TensorKind::parameter;
      const at::Tensor change = (learned ? micro_batch.parameters[parameter++].grad() : micro_batch.statistics[statistic++]).contiguous();
      const auto values = span_of<float>(change);
      const float* before = learned ? nullptr : micro_batch.values.data() + tensor.offset;
      for (std::size_t i = 0; i < values.size(); ++i) out[tensor.offset + i] += factor * (learned ? values[i] : values[i] - before[i]);
    }
    micro_batches_.erase(micro);
  }

  struct MicroBatch {
    std::span<const float> values;       // of the caller
    std::vector<at::Tensor> parameters;  // views of them
    std::vector<at::Tensor> statistics;  // copies, which forward changes
    at::Tensor input;
    at::Tensor output;
    at::Tensor output_gradient;
  };

  void bind(std::span<const float> values, MicroBatch& micro_batch) {
    micro_batch.values = values;
    for (std::size_t t = 0; t < model_.slots.size(); ++t) {
      const Tensor& tensor = shape().tensors[t];
      at::Tensor view = at::from_blob(const_cast<float*>(values.data() + tensor.offset), tensor.shape, at::kFloat);
      if (tensor.kind == TensorKind::parameter)
        micro_batch.parameters.push_back(view.requires_grad_(true));
      else
        micro_batch.statistics.push_back(view = view.clone());
      model_.slots[t]->tensor = view;
    }
  }

  Model model_;
  std::shared_ptr<const DataSet> data_;
  Batch batch_;
  bool first_, last_;
  std::map<std::uint64_t, MicroBatch> micro_batches_;  // from forward to weight gradient
};

}  // namespace

Result<std::vector<std::unique_ptr<StageLearner>>> make_stages(const ModelSpec& spec, const std::shared_ptr<const DataSet>& data,
                                                               std::span<const std::uint32_t> first_blocks) {
  auto model = make_model(spec, data->shape());
  if (!model) return model.error();
  check(!first_blocks.empty() && first_blocks.front() == 0, "the first stage begins with the first block");
  std::vector<std::unique_ptr<StageLearner>> stages;
  for (std::size_t s = 0; s < first_blocks.size(); ++s) {
    const bool last = s + 1 == first_blocks.size();
    const std::size_t end = last ? model->blocks.size() : first_blocks[s + 1];
    check(first_blocks[s] < end && end <= model->blocks.size(), "every stage has a block");
    Blocks blocks;
    for (std::size_t b = first_blocks[s]; b < end; ++b) blocks.push_back(std::move(model->blocks[b]));
    stages.push_back(std::make_unique<TorchStage>(lay_out(std::move(blocks), model->loss, first_blocks[s]), data, s == 0, last));
  }
  return stages;
}

}  // namespace motley::learn
