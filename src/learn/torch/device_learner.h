// A learner on a device with memory of its own; see device_learner.cpp.
#pragma once
#include <ATen/ATen.h>

#include <memory>

#include "learn/dataset.h"
#include "learn/learner.h"
#include "learn/torch/models.h"

namespace motley::learn {

/// What was found out about a model on the CPU.
struct Measured {
  std::uint64_t activation_bytes = 0;  // of one sample
  std::vector<BlockProfile> profile;
};

/// Loss and hits over `samples` samples, as a step tells them.
StepResult per_sample(const double* sums, std::uint64_t samples, const SampleShape& shape);

/// `half`: weights and activations in bf16. On the CPU too, for tests. Throws what torch throws.
std::unique_ptr<Learner> device_learner(Model model, Measured measured, std::shared_ptr<const DataSet> data, at::Device device, bool half);

}  // namespace motley::learn
