// A learner on a device with memory of its own. Values are copied to the device block by block before their forward pass, gradients to the
// host block by block as their backward pass ends, through pinned memory.
#pragma once
#include <ATen/ATen.h>

#include <memory>

#include "learn/dataset.h"
#include "learn/learner.h"
#include "learn/torch/models.h"

namespace motley::learn {

/// Facts about a model, measured on the CPU.
struct Measured {
  std::uint64_t activation_bytes = 0;  // of one sample
  std::vector<BlockProfile> profile;
};

/// `sums`: loss and hits over all targets of `samples` samples. A sample of text counts once, however many characters it predicts.
StepResult per_sample(const double* sums, std::uint64_t samples, const SampleShape& shape);

/// `bf16`: weights and activations in bf16. `device` may be the CPU, for tests. Throws what torch throws.
std::unique_ptr<Learner> device_learner(Model model, Measured measured, std::shared_ptr<const DataSet> data, at::Device device, bool bf16);

}  // namespace motley::learn
