// Learners by how they compute gradients, for tests that compare them. Torch-free header.
#pragma once
#include "learn/learner.h"

namespace motley::learn {

/// As make_learner(), but with torch's autograd for every model, also for mlp.
Result<std::unique_ptr<Learner>> make_autograd_learner(const ModelSpec& spec, std::shared_ptr<const DataSet> data);

/// The learner for GPUs, on the CPU.
Result<std::unique_ptr<Learner>> make_device_learner(const ModelSpec& spec, std::shared_ptr<const DataSet> data);

}  // namespace motley::learn
