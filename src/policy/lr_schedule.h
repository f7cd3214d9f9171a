// The learning rate over the training: linear warm-up, then constant, steps or a cosine, as a function of the samples counted so far; and
// rho, the look-ahead by momentum.
#pragma once
#include <cstdint>

#include "policy/spec.h"

namespace motley::policy {

class LrSchedule {
 public:
  /// Progress is counted in samples: `global_batch` of them are one unit of warm-up, `epoch` of them an epoch, `total` the whole training.
  LrSchedule(const LrScheduleSpec& spec, std::uint32_t global_batch, std::uint64_t epoch, std::uint64_t total);
  [[nodiscard]] double rate(std::uint64_t samples) const;
  /// The highest rate of the schedule: warm-up, steps and cosine only lower it.
  [[nodiscard]] double most() const { return spec_.lr; }

 private:
  LrScheduleSpec spec_;
  double global_batch_;
  double epoch_;
  double total_;
};

/// rho = mu + mu^2 + ... + mu^terms. Parameters are sent as w - rho*rate*v; one term is Nesterov's method.
[[nodiscard]] double look_ahead(double momentum, std::uint32_t terms);

}  // namespace motley::policy
