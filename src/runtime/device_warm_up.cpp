#include "runtime/device_warm_up.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>
#include <vector>

#include "runtime/buffer.h"
#include "runtime/constants.h"

namespace motley::runtime {

cluster::Affine DeviceWarmUp::measure(const std::function<void(std::uint64_t)>& measured) {
  const auto best_of = [&](std::uint64_t samples) {
    const double best = fastest(samples);
    measured(samples);
    return best;
  };
  const std::uint32_t multiple = std::max(options_.batch_multiple, 1U);
  const std::uint64_t half = options_.usual / 2 / multiple * multiple;
  const double whole = best_of(options_.usual);
  if (half == 0) return {0, whole / options_.usual};
  const double slope = (whole - best_of(half)) / static_cast<double>(options_.usual - half);
  const double fixed = std::clamp(whole - slope * options_.usual, 0.0, max_fixed_fraction * whole);
  return {fixed, (whole - fixed) / options_.usual};
}

/// Seconds. Other workers of this machine may warm up at the same time, so it repeats until the time no longer improves.
double DeviceWarmUp::fastest(std::uint64_t samples) {
  try_out(samples);  // the first one loads libraries
  double best = std::numeric_limits<double>::infinity();
  for (int tries = 0, without_gain = 0; tries < warm_up_steps && without_gain < warm_up_steps_without_gain; ++tries) {
    const double took = seconds(try_out(samples));
    without_gain = took < warm_up_gain * best ? 0 : without_gain + 1;
    best = std::min(best, took);
  }
  return best;
}

/// Computes a step from and to the memory that real ones use, and returns how long it took.
Duration DeviceWarmUp::try_out(std::uint64_t size) {
  const SharedBuffer values = make_shareable_buffer(options_.values);
  const SharedBuffer out = make_shareable_buffer(options_.values);
  std::fill(values->floats().begin(), values->floats().end(), 0.0F);
  std::vector<std::uint32_t> samples(std::min(size, options_.epoch_samples));
  std::iota(samples.begin(), samples.end(), 0U);
  NoStreaming no_streaming;
  LocalSgd* const steps = options_.local_steps ? source_.local_sgd() : nullptr;
  const auto since = std::chrono::steady_clock::now();
  if (steps != nullptr) {
    steps->begin(values->floats());
    steps->begin_round();
    steps->step(samples, {});
    steps->delta(out->floats(), nullptr);
  } else {
    source_.gradient(values->floats(), samples, out->floats(), no_streaming);
  }
  return std::chrono::steady_clock::now() - since;
}

}  // namespace motley::runtime
