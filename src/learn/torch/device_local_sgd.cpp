#include "learn/torch/device_local_sgd.h"

#include <array>

#include "learn/torch/device_codec.h"
#include "learn/torch/device_learner.h"
#include "learn/torch/pinned.h"

namespace motley::learn {

namespace {

class DeviceLocalSgd final : public LocalSgd {
 public:
  DeviceLocalSgd(DeviceModel& model, DeviceSamples& samples, const SampleShape& shape)
      : model_(model),
        lanes_(model.lanes()),
        samples_(samples),
        shape_(shape),
        parameters_(model.shape().parameters),
        all_(model.shape().values()),
        host_to_device_(lanes_, all_, model.device()),
        leaves_(pinned(all_, at::kFloat, model.device())),
        score_(pinned(6, at::kDouble, model.device())),
        coder_(lanes_, all_, model.device()) {
    const auto guard = lanes_.on(Lane::compute);
    for (at::Tensor* each : {&local_model_, &start_, &last_delta_, &newer_, &watched_}) *each = at::zeros_like(model_.values());
    momentum_ = at::zeros_like(part(local_model_, 0, parameters_));
    sums_ = at::zeros({2}, at::TensorOptions(at::kDouble).device(model_.device()));
    update_norm_ = at::zeros({1}, sums_.options());
    lanes_.settle();
  }

  void begin(std::span<const float> values) override {
    const auto guard = lanes_.on(Lane::compute);
    momentum_.zero_();
    last_delta_.zero_();
    put(0, values);
  }

  void put(std::uint64_t first, std::span<const float> values) override {
    const auto guard = lanes_.on(Lane::compute);
    bring(first, values);
    const std::uint64_t last = first + values.size();
    part(local_model_, first, last).copy_(part(newer_, first, last));
    used_.set(lanes_, Lane::compute);
  }

  void put_stale(std::uint64_t first, std::span<const float> values, double kept_fraction) override {
    const auto guard = lanes_.on(Lane::compute);
    bring(first, values);
    each_kind(first, first + values.size(), kept_fraction, [&](std::uint64_t from, std::uint64_t to, double kept) {
      at::add_out(part_of(local_model_, from, to), part(newer_, from, to), part(last_delta_, from, to), kept);
    });
    used_.set(lanes_, Lane::compute);
  }

  void begin_round() override {
    const auto guard = lanes_.on(Lane::compute);
    start_.copy_(local_model_);
    sums_.zero_();
    taken_ = 0;
    steps_ = 0;
  }

  void merge(std::uint64_t first, std::span<const float> values, double kept_fraction) override {
    const auto guard = lanes_.on(Lane::compute);
    bring(first, values);
    each_kind(first, first + values.size(), kept_fraction, [&](std::uint64_t from, std::uint64_t to, double kept) {
      const at::Tensor delta = part(local_model_, from, to) - part(start_, from, to);
      at::add_out(part_of(local_model_, from, to), part(newer_, from, to), delta, kept);
      at::sub_out(part_of(start_, from, to), part(local_model_, from, to), delta);
    });
    used_.set(lanes_, Lane::compute);
  }

  void step(std::span<const std::uint32_t> samples, const Rule& rule) override {
    Mark& before_last = done_[steps_ % done_.size()];
    if (steps_ >= done_.size()) before_last.wait();
    const auto guard = lanes_.on(Lane::compute);
    const auto batch = samples_.gather(Part::training, samples);
    model_.expect({0, parameters_}, /*rounded=*/false);
    model_.round_gradients({});
    // Where the momentum would lead by itself.
    at::add_out(part_of(model_.values(), 0, parameters_), part(local_model_, 0, parameters_), momentum_, -rule.momentum * rule.rate);
    if (parameters_ < all_) part(model_.values(), parameters_, all_).copy_(part(local_model_, parameters_, all_));
    const at::Tensor logits = model_.forward(batch.inputs, Mode::training, [](std::size_t) { return true; });
    model_.backward(model_.score(logits, batch.targets, /*wants_gradient=*/true), [](std::size_t) {});
    sums_.add_(model_.sums());
    at::Tensor weights = part(local_model_, 0, parameters_);
    momentum_.mul_(rule.momentum).add_(part(model_.gradient(), 0, parameters_));
    if (rule.weight_decay != 0) momentum_.add_(weights, rule.weight_decay);
    weights.add_(momentum_, -rule.rate);
    if (parameters_ < all_) part(local_model_, parameters_, all_).add_(part(model_.gradient(), parameters_, all_));
    before_last.set(lanes_, Lane::compute);
    ++steps_;
    taken_ += samples.size();
  }

  using LocalSgd::delta;
  StepResult delta(std::span<float> out, const GradientEncoding* coding) override {
    check(out.size() == all_, "a way is as long as the model");
    const bool direct = is_pinned(std::as_bytes(out));
    {
      const auto guard = lanes_.on(Lane::compute);
      at::sub_out(last_delta_, local_model_, start_);
      const at::Tensor leaves = direct ? as_tensor(out) : leaves_;
      if (coding != nullptr) {
        coder_.begin(*coding);
        coder_.code(0, all_, last_delta_, leaves.view(at::kByte));
      } else {
        leaves.copy_(last_delta_, /*non_blocking=*/true);
      }
      score_.copy_(at::cat({sums_, model_.squared_norm(last_delta_).unsqueeze(0), update_norm_, coder_.kept()}), /*non_blocking=*/true);
    }
    lanes_.settle();
    if (!direct) std::copy_n(leaves_.data_ptr<float>(), all_, out.begin());
    StepResult result = per_sample(score_.data_ptr<double>(), taken_, shape_);
    result.squared_norm = score_.data_ptr<double>()[2];
    result.coded = coding != nullptr;
    if (result.coded) result.residual = residual_ratio(score_.data_ptr<double>() + 4);
    return result;
  }

  void watch() override {
    const auto guard = lanes_.on(Lane::compute);
    update_norm_ = model_.squared_norm(newer_ - watched_).unsqueeze(0);
    watched_.copy_(newer_);
    used_.set(lanes_, Lane::compute);
  }
  [[nodiscard]] double update_norm() const override { return score_.data_ptr<double>()[3]; }

 private:
  /// Newer values are on the device.
  void bring(std::uint64_t first, std::span<const float> values) {
    host_to_device_.wait();  // its room may be in use
    used_.hold_if_set(lanes_, Lane::in);
    host_to_device_.take(first, std::as_bytes(values), newer_);
    host_to_device_.join();
    if (is_pinned(std::as_bytes(values))) host_to_device_.wait();  // whose they are may take them back when we return
  }

  /// Parameters keep a part, and so does their momentum; statistics keep all.
  template <class Do>
  void each_kind(std::uint64_t first, std::uint64_t last, double kept_fraction, Do act) {
    const std::uint64_t border = std::clamp(parameters_, first, last);
    if (first < border) {
      act(first, border, kept_fraction);
      part(momentum_, first, border).mul_(kept_fraction);
    }
    if (border < last) act(border, last, 1.0);
  }

  /// As an output, which torch takes by a reference.
  at::Tensor& part_of(const at::Tensor& flat, std::uint64_t first, std::uint64_t last) { return output_ = part(flat, first, last); }

  DeviceModel& model_;
  const Lanes& lanes_;
  DeviceSamples& samples_;
  SampleShape shape_;
  std::uint64_t parameters_, all_;
  HostToDevice host_to_device_;
  at::Tensor leaves_, score_;  // pinned
  DeviceCoder coder_;
  at::Tensor local_model_, start_, last_delta_, newer_, watched_;  // flat, on the device
  at::Tensor momentum_, sums_, update_norm_, output_;
  Mark used_;                 // of newer_
  std::array<Mark, 2> done_;  // by step
  std::uint64_t steps_ = 0;   // of the round
  std::uint64_t taken_ = 0;   // samples of it
};

}  // namespace

std::unique_ptr<LocalSgd> device_local_sgd(DeviceModel& model, DeviceSamples& samples, const SampleShape& shape) {
  return std::make_unique<DeviceLocalSgd>(model, samples, shape);
}

}  // namespace motley::learn
