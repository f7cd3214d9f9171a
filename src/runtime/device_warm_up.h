// A few steps whose results are dropped, before a worker says Hello: they load the device's libraries and measure what a step and a sample
// cost.
#pragma once
#include <cstdint>
#include <functional>

#include "base/gradient_source.h"
#include "base/time.h"
#include "cluster/cost.h"

namespace motley::runtime {

struct DeviceWarmUpOptions {
  std::uint64_t values{};         // of the model
  std::uint64_t epoch_samples{};  // a step has no more
  std::uint32_t usual{};          // samples of the first steps
  std::uint32_t batch_multiple{};
  bool local_steps = false;
};

/// Computing thread only. Throws what the source throws.
class DeviceWarmUp {
 public:
  DeviceWarmUp(GradientSource& source, const DeviceWarmUpOptions& options) : source_(source), options_(options) {}

  /// Measures steps of the usual size and of half of it, which give the cost per step and per sample. `measured`: called with each size.
  cluster::Affine measure(const std::function<void(std::uint64_t)>& measured);

 private:
  double fastest(std::uint64_t samples);
  Duration try_out(std::uint64_t samples);

  GradientSource& source_;
  DeviceWarmUpOptions options_;
};

}  // namespace motley::runtime
