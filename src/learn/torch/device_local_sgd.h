// Local steps on a device with memory of its own; see learn/learner.h.
#pragma once
#include <memory>

#include "learn/learner.h"
#include "learn/torch/device_model.h"
#include "learn/torch/device_samples.h"

namespace motley::learn {

/// Keeps references to both. Nothing else may use the model while a round is under way.
std::unique_ptr<LocalSgd> device_local_sgd(DeviceModel& model, DeviceSamples& samples, const SampleShape& shape);

}  // namespace motley::learn
