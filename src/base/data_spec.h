// DataSpec: the data set of a job.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace motley {

struct DataSpec {
  /// fashion-mnist | mnist | cifar10 | cifar100 | text | synthetic | noise, or a name that a program has registered.
  std::string kind = "fashion-mnist";
  /// A folder, or a file for text. May be empty for fashion-mnist (taken from Debian's package), synthetic and noise.
  std::filesystem::path path;
  std::string evaluate = "test";   // "test", or "validation": the last tenth of the training set, which is then not trained on
  std::string split = "shuffled";  // "shuffled": every node gets samples of all classes; "by-label": of some classes only
  std::uint64_t samples = 4096;    // synthetic, noise: training samples (and a quarter as many test samples)
  std::uint64_t features = 16;     // synthetic: inputs of the teacher network
  std::uint64_t classes = 4;       // synthetic, noise
  std::uint64_t context = 64;      // text: characters of one sample
  std::uint64_t seed = 0;          // synthetic: of the teacher network
  std::vector<std::uint64_t> picture{3, 32, 32};  // noise: channels, height, width
};

}  // namespace motley
