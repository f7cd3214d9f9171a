#include "learn/torch/device_local_sgd.h"

#include <algorithm>
#include <array>

#include "learn/torch/delta_download.h"
#include "learn/torch/device_learner.h"
#include "learn/torch/errors.h"
#include "learn/torch/received_values.h"

namespace motley::learn {

namespace {

class DeviceLocalSgd final : public LocalSgd {
 public:
  /// Call with the compute lane as the current one.
  DeviceLocalSgd(DeviceModel& model, DeviceSamples& samples, const SampleShape& shape)
      : model_(model),
        samples_(samples),
        shape_(shape),
        parameters_(model.shape().parameters),
        all_(model.shape().values()),
        received_(model),
        download_(model) {
    for (at::Tensor* each : {&local_model_, &start_, &last_delta_}) *each = at::zeros_like(model_.values());
    momentum_ = at::zeros_like(part(local_model_, 0, parameters_));
    sums_ = at::zeros({2}, at::TensorOptions(at::kDouble).device(model_.device()));
  }

  void begin(std::span<const float> values) override {
    on_compute_lane([&] {
      momentum_.zero_();
      last_delta_.zero_();
      put(0, values);
    });
  }

  void put(std::uint64_t first, std::span<const float> values) override {
    on_compute_lane([&] {
      received_.receive(first, values);
      const std::uint64_t last = first + values.size();
      part(local_model_, first, last).copy_(part(received_.values(), first, last));
      received_.mark_read();
    });
  }

  void put_stale(std::uint64_t first, std::span<const float> values, double kept_fraction) override {
    on_compute_lane([&] {
      received_.receive(first, values);
      each_kind(first, first + values.size(), kept_fraction, [&](std::uint64_t from, std::uint64_t to, double kept) {
        at::add_out(output(local_model_, from, to), part(received_.values(), from, to), part(last_delta_, from, to), kept);
      });
      received_.mark_read();
    });
  }

  void begin_round() override {
    on_compute_lane([&] {
      start_.copy_(local_model_);
      sums_.zero_();
      samples_done_ = 0;
      steps_ = 0;
    });
  }

  void merge(std::uint64_t first, std::span<const float> values, double kept_fraction) override {
    on_compute_lane([&] {
      received_.receive(first, values);
      each_kind(first, first + values.size(), kept_fraction, [&](std::uint64_t from, std::uint64_t to, double kept) {
        const at::Tensor delta = part(local_model_, from, to) - part(start_, from, to);
        at::add_out(output(local_model_, from, to), part(received_.values(), from, to), delta, kept);
        at::sub_out(output(start_, from, to), part(local_model_, from, to), delta);
      });
      received_.mark_read();
    });
  }

  void step(std::span<const std::uint32_t> samples, const Rule& rule) override {
    on_compute_lane([&] {
      Mark& before_last = done_[steps_ % done_.size()];
      if (steps_ >= done_.size()) before_last.wait();
      compute_gradient(samples, rule);
      update(rule);
      before_last.set(model_.lanes(), Lane::compute);
      ++steps_;
      samples_done_ += samples.size();
    });
  }

  using LocalSgd::delta;
  StepResult delta(std::span<float> out, const GradientEncoding* encoding) override {
    check(out.size() == all_, "a delta is as long as the model");
    return on_compute_lane([&] {
      at::sub_out(last_delta_, local_model_, start_);
      scalars_ = download_.download(last_delta_, sums_, received_.update_norm(), encoding, out);
      StepResult result = per_sample(scalars_.sums.data(), samples_done_, shape_);
      result.squared_norm = scalars_.squared_norm;
      result.encoded = encoding != nullptr;
      result.residual = scalars_.residual;
      return result;
    });
  }

  void watch() override {
    on_compute_lane([&] { received_.watch(); });
  }
  [[nodiscard]] double update_norm() const override { return scalars_.update_norm; }

 private:
  template <class Work>
  auto on_compute_lane(Work work) -> decltype(work()) {
    return translate_errors([&] {
      const auto guard = model_.lanes().on(Lane::compute);
      return work();
    });
  }

  /// At the point to which the momentum alone would lead: Nesterov's look-ahead.
  void compute_gradient(std::span<const std::uint32_t> samples, const Rule& rule) {
    const auto batch = samples_.gather(Part::training, samples);
    model_.expect({0, parameters_}, /*rounded=*/false);
    model_.round_gradients({});
    at::add_out(output(model_.values(), 0, parameters_), part(local_model_, 0, parameters_), momentum_, -rule.momentum * rule.rate);
    if (parameters_ < all_) part(model_.values(), parameters_, all_).copy_(part(local_model_, parameters_, all_));
    const at::Tensor logits = model_.forward(batch.inputs, Mode::training, [](std::size_t) { return true; });
    model_.backward(model_.score(logits, batch.targets, /*wants_gradient=*/true), [](std::size_t) {});
    sums_.add_(model_.sums());
  }

  void update(const Rule& rule) {
    at::Tensor weights = part(local_model_, 0, parameters_);
    momentum_.mul_(rule.momentum).add_(part(model_.gradient(), 0, parameters_));
    if (rule.weight_decay != 0) momentum_.add_(weights, rule.weight_decay);
    weights.add_(momentum_, -rule.rate);
    if (parameters_ < all_) part(local_model_, parameters_, all_).add_(part(model_.gradient(), parameters_, all_));
  }

  /// Calls `act(first, last, kept)` for the parameters and for the statistics of a range. Parameters, and their momentum, keep
  /// `kept_fraction`; statistics keep all.
  template <class Act>
  void each_kind(std::uint64_t first, std::uint64_t last, double kept_fraction, Act act) {
    const std::uint64_t border = std::clamp(parameters_, first, last);
    if (first < border) {
      act(first, border, kept_fraction);
      part(momentum_, first, border).mul_(kept_fraction);
    }
    if (border < last) act(border, last, 1.0);
  }

  /// A range as an output argument, which torch takes by reference.
  at::Tensor& output(const at::Tensor& flat, std::uint64_t first, std::uint64_t last) { return output_ = part(flat, first, last); }

  DeviceModel& model_;
  DeviceSamples& samples_;
  SampleShape shape_;
  std::uint64_t parameters_, all_;
  ReceivedValues received_;
  DeltaDownload download_;
  at::Tensor local_model_, start_, last_delta_;  // flat, on the device; `start_`: the model at the beginning of the round
  at::Tensor momentum_, sums_, output_;
  std::array<Mark, 2> done_;        // the last two steps
  std::uint64_t steps_ = 0;         // of the round
  std::uint64_t samples_done_ = 0;  // in the round
  DeltaDownload::Scalars scalars_;  // of the last round
};

}  // namespace

std::unique_ptr<LocalSgd> device_local_sgd(DeviceModel& model, DeviceSamples& samples, const SampleShape& shape) {
  const auto guard = model.lanes().on(Lane::compute);
  auto local_sgd = std::make_unique<DeviceLocalSgd>(model, samples, shape);
  model.lanes().settle();
  return local_sgd;
}

}  // namespace motley::learn
