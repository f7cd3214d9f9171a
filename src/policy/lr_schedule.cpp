#include "policy/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace motley::policy {

LrSchedule::LrSchedule(const LrScheduleSpec& spec, std::uint32_t global_batch, std::uint64_t epoch, std::uint64_t total)
    : spec_(spec), global_batch_(global_batch), epoch_(static_cast<double>(epoch)), total_(static_cast<double>(total)) {}

double LrSchedule::rate(std::uint64_t samples) const {
  const double done = static_cast<double>(samples);
  const double warm = spec_.warmup > 0 ? std::min(1.0, (done / global_batch_ + 1) / spec_.warmup) : 1.0;
  switch (spec_.kind) {
    case LrScheduleSpec::Kind::constant: return spec_.lr * warm;
    case LrScheduleSpec::Kind::step:
      return spec_.lr * warm * std::pow(spec_.step_factor, std::floor(done / (epoch_ * spec_.step_every_epochs)));
    case LrScheduleSpec::Kind::cosine: {
      const double progress = std::min(1.0, done / total_);
      const double shape = 0.5 * (1 + std::cos(std::numbers::pi * progress));
      return spec_.lr * warm * (spec_.final_fraction + (1 - spec_.final_fraction) * shape);
    }
  }
  return spec_.lr;
}

double look_ahead(double momentum, std::uint32_t terms) {
  double rho = 0;
  double power = 1;
  for (std::uint32_t i = 0; i < terms; ++i) rho += power *= momentum;
  return rho;
}

}  // namespace motley::policy
