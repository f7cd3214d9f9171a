// Data sets: where the samples come from. Torch-free; pictures live in memory as bytes and text as character codes, and become
// normalised floats (by the training set's mean and deviation of each channel) only when a batch is gathered.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace motley::learn {

struct DataSpec {
  std::string kind = "fashion-mnist";  // fashion-mnist | mnist | cifar10 | cifar100 | text | synthetic | noise
  std::filesystem::path
      path;  // folder (or file, for text); may be empty for fashion-mnist (Debian's package has its place), synthetic and noise
  std::string evaluate = "test";   // "test", or "validation": the last tenth of the training set, which is then not trained on
  std::string split = "shuffled";  // who gets which samples: anybody any, or "by-label": each node some of the classes
  std::uint64_t samples = 4096;    // synthetic, noise: training samples (a quarter as many test samples)
  std::uint64_t features = 16;     // synthetic: inputs of the teacher network
  std::uint64_t classes = 4;       // synthetic, noise
  std::uint64_t context = 64;      // text: characters a model sees at once
  std::uint64_t seed = 0;          // synthetic: the teacher
  std::vector<std::uint64_t> picture{3, 32, 32};  // noise: channels, height, width
};

/// Loaded once, shared by every learner of the process, never changed. Opaque here: `learn` knows its inside.
class DataSet;

/// Errors name the file, what was expected of it and the command that fetches it.
Result<std::shared_ptr<const DataSet>> load(const DataSpec& spec);

/// How many samples one epoch has. Those that `evaluate` takes for validation are not among them.
std::uint64_t training_samples(const DataSet& data);

/// The class of each training sample; empty where a sample has no one class (text).
std::vector<std::uint32_t> training_labels(const DataSet& data);

}  // namespace motley::learn
