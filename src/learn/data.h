// Data sets: where the samples come from. Torch-free; pictures live in memory as bytes and text as character codes, and become
// normalised floats (by the training set's mean and deviation of each channel) only when a batch is gathered.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/data_spec.h"
#include "base/result.h"

namespace motley::learn {

class DataSet;  // learn/dataset.h

/// The data set that is registered as spec.kind. Errors name the file, the content that was expected and the command that fetches it.
Result<std::shared_ptr<const DataSet>> load(const DataSpec& spec);

/// How many samples one epoch has. Those that `evaluate` takes for validation are not among them.
std::uint64_t training_samples(const DataSet& data);

/// The class of each training sample; empty where a sample has no one class (text).
std::vector<std::uint32_t> training_labels(const DataSet& data);

}  // namespace motley::learn
