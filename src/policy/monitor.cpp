#include "policy/monitor.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "policy/constants.h"

namespace motley::policy {

void SpeedFit::observe(std::uint32_t samples, Duration compute) {
  const double b = samples;
  const double t = std::max(seconds(compute), 1e-9);
  const double ratio = observations_ > 0 ? t / fit_.at(b) : 1.0;
  if (jumped(b, ratio)) {
    rescale(ratio);
  } else {
    strayed(ratio);
    refit(b, t);
  }
  last_samples_ = b;
  ++observations_;
}

void SpeedFit::observe_limited(std::uint32_t samples, Duration compute) {
  if (observations_ == 0) return observe(samples, compute);
  const double ratio = std::max(seconds(compute), 1e-9) / fit_.at(samples);
  if (out_of_bounds(ratio)) {
    rescale(ratio);
  } else {
    strayed(ratio);
    rescale(1 + (1 - speed_fit::forgetting) * (ratio - 1));
  }
  last_samples_ = samples;
  ++observations_;
}

void SpeedFit::observe_unfinished(std::uint32_t samples, Duration so_far) {
  if (observations_ == 0) return observe(samples, so_far);
  if (const double ratio = seconds(so_far) / fit_.at(samples); ratio > 1) rescale(ratio);
}

void SpeedFit::strayed(double ratio) {
  if (observations_ >= speed_fit::settled && !out_of_bounds(ratio))
    jitter_ += (1 - speed_fit::forgetting) * (speed_fit::deviation_of_mean * std::abs(ratio - 1) - jitter_);
}

bool SpeedFit::out_of_bounds(double ratio) { return ratio > speed_fit::jump || ratio < 1 / speed_fit::jump; }

bool SpeedFit::jumped(double samples, double ratio) const {
  return out_of_bounds(ratio) && std::abs(samples - last_samples_) <= speed_fit::alike * last_samples_;
}

void SpeedFit::rescale(double ratio) {
  seconds_ *= ratio;
  products_ *= ratio;
  fit_.fixed *= ratio;
  fit_.per_sample *= ratio;
}

void SpeedFit::refit(double b, double t) {
  weight_ = speed_fit::forgetting * weight_ + 1;
  samples_ = speed_fit::forgetting * samples_ + b;
  squares_ = speed_fit::forgetting * squares_ + b * b;
  seconds_ = speed_fit::forgetting * seconds_ + t;
  products_ = speed_fit::forgetting * products_ + b * t;

  const double mean_b = samples_ / weight_;
  const double mean_t = seconds_ / weight_;
  const double variance = squares_ / weight_ - mean_b * mean_b;
  const double spread = variance / (mean_b * mean_b);
  const bool tells = spread > speed_fit::least_relative_variance;
  if (tells) {
    const double slope = (products_ / weight_ - mean_b * mean_t) / variance;
    fit_.fixed = std::clamp(mean_t - slope * mean_b, 0.0, speed_fit::most_fixed * mean_t);
  }
  if (prior_.per_sample > 0) {
    const double reported = prior_.fixed * mean_t / prior_.at(mean_b);  // scaled: the device may be slower or faster now, as a whole
    const double seen = tells ? weight_ * spread : 0;
    fit_.fixed = (speed_fit::prior_evidence * reported + seen * fit_.fixed) / (speed_fit::prior_evidence + seen);
  }
  fit_.fixed = std::min(fit_.fixed, speed_fit::most_fixed * mean_t);
  fit_.per_sample = (mean_t - fit_.fixed) / mean_b;
}

double Traffic::bytes(std::uint8_t bits) const {
  switch (bits) {
    case 32: return bytes_32;
    case 16: return bytes_16;
    case 8: return bytes_8;
    case 4: return bytes_4;
    default: return bytes_2;
  }
}

void Monitor::joined(WorkerId worker, const cluster::DeviceProfile& device) {
  if (measured_.size() <= worker.value) measured_.resize(worker.value + 1);
  measured_[worker.value].speed = SpeedFit(device.cost);
  measured_[worker.value].bytes_per_value = device.bytes_per_value;
}

void Monitor::observe(const Contribution& c) {
  const StepReport& report = c.report;
  check(c.worker.value < measured_.size(), "a measured worker has joined");
  Measured& measured = measured_[c.worker.value];
  const std::uint32_t samples = report.samples / report.local_steps;
  // A first step of a size takes longer than later ones, never less: one that is faster than the fit is still an observation.
  const auto fit_is_better = [&] {
    return report.new_batch_size &&
           (measured.speed.observations() == 0 || seconds(report.compute) / report.local_steps >= measured.speed.fit().at(samples));
  };
  if (samples > 0 && !fit_is_better()) {
    if (c.time_limited)
      measured.speed.observe_limited(samples, report.compute / report.local_steps);
    else
      measured.speed.observe(samples, report.compute / report.local_steps);
  }
  learn_new_size_cost(measured, report);
  const auto move = [&](double& average, Duration took, std::uint8_t bits) {
    if (took <= Duration{0}) return;
    const double link_s = std::max(seconds(took) - traffic_.coding(bits), monitoring::least_link_part * seconds(took));
    const double now = link_s / bytes(measured, bits);
    average = average == 0 ? now : average + monitoring::newest_transfer * (now - average);
  };
  move(measured.push, c.push, c.bits.push);
  move(measured.pull, report.pull, c.bits.pull);
}

void Monitor::learn_new_size_cost(Measured& measured, const StepReport& report) {
  const bool compares = measured.speed.observations() > 0;
  const auto learn = [&](double took, double usual) {
    const double longer = std::max(0.0, took - usual);
    measured.new_size_cost_s = measured.new_size_cost_s == 0
                                   ? longer
                                   : measured.new_size_cost_s + monitoring::newest_new_size * (longer - measured.new_size_cost_s);
  };
  const std::uint32_t samples = report.samples / report.local_steps;
  if (report.new_batch_size || !measured.sizes.empty()) measured.sizes.insert(samples);
  if (report.new_batch_size && samples > 0) {
    if (compares) {
      learn(seconds(report.compute), measured.speed.fit().at(samples) * report.local_steps);
    } else if (report.local_steps == 1) {
      measured.unmeasured_size = samples;
      measured.unmeasured_s = seconds(report.compute);
    }
  }
  if (compares && measured.unmeasured_size > 0)
    learn(measured.unmeasured_s, measured.speed.fit().at(std::exchange(measured.unmeasured_size, 0)));
}

double Monitor::new_batch_size_s(WorkerId worker, std::uint32_t samples) const {
  const Measured& measured = of(worker);
  return measured.sizes.contains(samples) ? 0 : measured.new_size_cost_s;
}

void Monitor::ordered(WorkerId worker, std::uint32_t samples) {
  check(worker.value < measured_.size(), "a worker with an order has joined");
  measured_[worker.value].ordered = samples;
}

void Monitor::given_up(WorkerId worker, Duration so_far) {
  Measured& measured = measured_[worker.value];
  if (measured.ordered > 0 && so_far > Duration{0}) measured.speed.observe_unfinished(measured.ordered, so_far);
}

const Monitor::Measured& Monitor::of(WorkerId worker) const {
  check(worker.value < measured_.size(), "the worker has joined");
  return measured_[worker.value];
}

}  // namespace motley::policy
