// Local steps of SGD on a device with memory of its own: see LocalSgd in base/gradient_source.h.
#pragma once
#include <memory>

#include "base/gradient_source.h"
#include "learn/torch/device_model.h"
#include "learn/torch/device_samples.h"

namespace motley::learn {

/// Keeps references to both. Nothing else may use the model during a round.
std::unique_ptr<LocalSgd> device_local_sgd(DeviceModel& model, DeviceSamples& samples, const SampleShape& shape);

}  // namespace motley::learn
