#include "policy/monitor.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace motley::policy {
namespace {

constexpr double forgetting = 0.9;
// Below this relative spread of the batches seen, noise in the times would be read as overhead.
constexpr double least_relative_variance = 0.05 * 0.05;
constexpr double jump = 1.6;
constexpr double alike = 0.25;  // a batch this close to the last one is predicted well whatever a and beta are

}  // namespace

void SpeedFit::observe(std::uint32_t samples, Duration compute) {
  const double b = samples;
  const double t = std::max(seconds(compute), 1e-9);
  const double ratio = observations_ > 0 ? t / fit_.at(b) : 1.0;
  if (jumped(b, ratio))
    rescale(ratio);
  else
    refit(b, t);
  last_samples_ = b;
  ++observations_;
}

bool SpeedFit::jumped(double samples, double ratio) const {
  return (ratio > jump || ratio < 1 / jump) && std::abs(samples - last_samples_) <= alike * last_samples_;
}

void SpeedFit::rescale(double ratio) {
  seconds_ *= ratio;
  products_ *= ratio;
  fit_.fixed *= ratio;
  fit_.per_sample *= ratio;
}

void SpeedFit::refit(double b, double t) {
  weight_ = forgetting * weight_ + 1;
  samples_ = forgetting * samples_ + b;
  squares_ = forgetting * squares_ + b * b;
  seconds_ = forgetting * seconds_ + t;
  products_ = forgetting * products_ + b * t;

  const double mean_b = samples_ / weight_;
  const double mean_t = seconds_ / weight_;
  const double variance = squares_ / weight_ - mean_b * mean_b;
  if (variance > least_relative_variance * mean_b * mean_b) {
    const double slope = (products_ / weight_ - mean_b * mean_t) / variance;
    fit_.fixed = std::clamp(mean_t - slope * mean_b, 0.0, 0.9 * mean_t);
  }
  fit_.fixed = std::min(fit_.fixed, 0.9 * mean_t);
  fit_.per_sample = (mean_t - fit_.fixed) / mean_b;
}

void Monitor::joined(WorkerId worker) {
  if (fits_.size() <= worker.value) fits_.resize(worker.value + 1);
}

void Monitor::observe(WorkerId worker, std::uint32_t samples, Duration compute) {
  check(worker.value < fits_.size(), "who is measured has joined");
  if (samples > 0) fits_[worker.value].observe(samples, compute);
}

const SpeedFit& Monitor::speed(WorkerId worker) const {
  check(worker.value < fits_.size(), "who is asked about has joined");
  return fits_[worker.value];
}

}  // namespace motley::policy
