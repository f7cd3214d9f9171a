// The parts of a step on a device: ParameterUpload and ForwardPass, DeviceModel's backward, GradientDownload. Uploads, computation and
// downloads have lanes of their own; samples are gathered and the loss is computed on the device, so the host waits only for gradients.
#include "learn/torch/device_learner.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "base/check.h"
#include "learn/constants.h"
#include "learn/torch/device_local_sgd.h"
#include "learn/torch/device_model.h"
#include "learn/torch/device_samples.h"
#include "learn/torch/errors.h"
#include "learn/torch/forward_pass.h"
#include "learn/torch/gradient_download.h"
#include "learn/torch/parameter_upload.h"
#include "learn/torch/pinned.h"

namespace motley::learn {

namespace {

class DeviceLearner final : public Learner {
 public:
  DeviceLearner(Model model, Measured measured, const std::shared_ptr<const DataSet>& data, at::Device device, bool bf16)
      : model_(std::move(model), device, bf16),
        measured_(std::move(measured)),
        samples_(data, {device, bf16 ? at::kBFloat16 : at::kFloat, device.is_cuda()}),
        shape_(data->shape()),
        evaluation_samples_(data->size(Part::evaluation)),
        evaluation_sums_(pinned(2, at::kDouble, device)),
        upload_(model_),
        forward_(model_, samples_, upload_),
        download_(model_) {}

  DeviceLearner(const DeviceLearner&) = delete;
  DeviceLearner& operator=(const DeviceLearner&) = delete;
  /// Callers may free the memory that they passed in: no copy may still read it.
  ~DeviceLearner() override {
    try {
      model_.lanes().settle();
    } catch (const std::exception&) {  // a device that has failed copies nothing
    }
  }

  const ModelShape& shape() const override { return model_.shape(); }
  std::uint64_t activation_bytes_per_sample() const override { return measured_.activation_bytes; }
  std::vector<BlockProfile> profile() override { return measured_.profile; }
  bool bf16_transfer() const override { return model_.rounded().defined(); }

  void initialize(std::uint64_t seed, std::span<float> values) override {
    check(values.size() == shape().values(), "values has room for the whole model");
    translate_errors([&] { fill_initial(model_.model(), seed, values); });
  }

  using Learner::gradient;
  StepResult gradient(std::span<const float> values, std::span<const std::uint32_t> samples, std::span<float> out, StepIo& io) override {
    return translate_errors([&] { return run(values, samples, out, io); });
  }

  StepResult evaluate(std::span<const float> values) override {
    return translate_errors([&] { return run_evaluation(values); });
  }

  LocalSgd* local_sgd() override {
    return translate_errors([&] {
      if (!local_sgd_) local_sgd_ = device_local_sgd(model_, samples_, shape_);
      return local_sgd_.get();
    });
  }

 private:
  /// Unless the computation ends normally: it leaves no graph, and no copy that uses the memory of the next one.
  class Abandon {
   public:
    explicit Abandon(ForwardPass& forward) : forward_(&forward) {}
    Abandon(const Abandon&) = delete;
    Abandon& operator=(const Abandon&) = delete;
    ~Abandon() {
      if (forward_ != nullptr) try {
          forward_->abandon();
        } catch (const std::exception&) {  // a device that has failed says so again at the next call
        }
    }
    void cancel() { forward_ = nullptr; }

   private:
    ForwardPass* forward_;
  };

  StepResult run(std::span<const float> values, std::span<const std::uint32_t> samples, std::span<float> out, StepIo& io) {
    check(!samples.empty(), "a gradient is taken over a sample or more");
    check(values.size() == shape().values() && out.size() == values.size(), "values and out hold the whole model");
    Abandon abandon(forward_);
    const auto guard = model_.lanes().on(Lane::compute);
    const std::optional<ForwardPass::Output> output = forward_.run(values, samples, io);
    if (!output) return {};
    const GradientEncoding* const encoding = io.gradient_encoding();
    download_.begin(out, encoding);
    at::Tensor logits_gradient = model_.score(output->logits, output->batch.targets, /*wants_gradient=*/true);
    model_.backward(std::move(logits_gradient), [&](std::size_t block) { download_.send(block); });
    download_.send_scalars();
    forward_.restore_statistics();
    forward_.gather_next(io);
    // All work of this step is asked for before the host waits for the first gradient.
    upload_.report_stalls(io);
    deliver(io);
    const GradientDownload::Scalars scalars = download_.scalars();
    abandon.cancel();
    StepResult result = per_sample(scalars.sums.data(), samples.size(), shape_);
    result.squared_norm = scalars.squared_norm;
    result.encoded = encoding != nullptr;
    result.residual = scalars.residual;
    return result;
  }

  /// In the order in which backward computes the gradients.
  void deliver(StepIo& io) {
    for (std::size_t block = model_.blocks(); block-- > 0;) {
      if (block < blocks_begun_early) forward_.begin_next(io);
      download_.deliver(block, io);
    }
    forward_.begin_next(io);
    download_.deliver(model_.blocks(), io);
  }

  StepResult run_evaluation(std::span<const float> values) {
    check(values.size() == shape().values(), "values holds the whole model");
    Abandon abandon(forward_);
    const auto guard = model_.lanes().on(Lane::compute);
    forward_.drop();
    NoStreaming no_streaming;
    std::vector<std::uint32_t> chunk(shape_.text ? device_evaluation_sequences : device_evaluation_samples);
    StepResult result;
    at::Tensor total = at::zeros({2}, at::TensorOptions(at::kDouble).device(model_.device()));
    for (std::uint64_t first = 0; first < evaluation_samples_; first += chunk.size()) {
      chunk.resize(std::min<std::uint64_t>(chunk.size(), evaluation_samples_ - first));
      std::iota(chunk.begin(), chunk.end(), static_cast<std::uint32_t>(first));
      const auto batch = samples_.gather(Part::evaluation, chunk);
      // The values are copied once, with the first chunk.
      if (first == 0) forward_.upload_statistics(values, no_streaming);
      const at::Tensor logits = model_.forward(batch.inputs, Mode::evaluation,
                                               [&](std::size_t block) { return first > 0 || upload_.upload(block, values, no_streaming); });
      model_.score(logits, batch.targets, /*wants_gradient=*/false);
      total.add_(model_.sums());
      result.samples += static_cast<std::uint64_t>(batch.targets.numel());
    }
    evaluation_sums_.copy_(total, /*non_blocking=*/true);
    model_.lanes().settle();
    abandon.cancel();
    result.loss_sum = evaluation_sums_.data_ptr<double>()[0];
    result.correct = static_cast<std::uint64_t>(evaluation_sums_.data_ptr<double>()[1]);
    return result;
  }

  DeviceModel model_;
  Measured measured_;
  DeviceSamples samples_;
  SampleShape shape_;
  std::uint64_t evaluation_samples_;
  at::Tensor evaluation_sums_;  // pinned: loss and hits
  ParameterUpload upload_;
  ForwardPass forward_;
  GradientDownload download_;
  std::unique_ptr<LocalSgd> local_sgd_;
};

}  // namespace

StepResult per_sample(const double* sums, std::uint64_t samples, const SampleShape& shape) {
  const auto targets = static_cast<std::uint64_t>(shape.targets());
  return {sums[0] / static_cast<double>(targets), (static_cast<std::uint64_t>(sums[1]) + targets / 2) / targets, samples};
}

std::unique_ptr<Learner> device_learner(Model model, Measured measured, std::shared_ptr<const DataSet> data, at::Device device, bool bf16) {
  return std::make_unique<DeviceLearner>(std::move(model), std::move(measured), data, device, bf16);
}

}  // namespace motley::learn
