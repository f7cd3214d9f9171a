// Loads data sets by name. The interface of a data set, for a new one too, is DataSet in dataset.h; registry.h says how to register it.
// Torch-free: pictures stay in memory as bytes, text as character codes; gathering a batch makes normalised floats of pictures.
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

/// The data set that is registered as spec.kind. Errors name the file, the expected content and the way to get it.
Result<std::shared_ptr<const DataSet>> load(const DataSpec& spec);

/// Samples of one epoch. Samples held out by evaluate = "validation" are not among them.
std::uint64_t training_samples(const DataSet& data);

/// The class of each training sample; empty for text, where a sample has several targets.
std::vector<std::uint32_t> training_labels(const DataSet& data);

}  // namespace motley::learn
