// The learners of this room by how they differentiate, for tests that hold one against the other. Torch-free header.
#pragma once
#include "learn/learner.h"

namespace motley::learn {

/// As make_learner(), but through torch's autograd for every model: the clear twin of the fast path that mlp takes.
Result<std::unique_ptr<Learner>> make_autograd_learner(const ModelSpec& spec, std::shared_ptr<const DataSet> data);

/// As on a GPU, but on the CPU.
Result<std::unique_ptr<Learner>> make_device_learner(const ModelSpec& spec, std::shared_ptr<const DataSet> data);

}  // namespace motley::learn
