// Which data a job trains on, as the user says it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace motley {

struct DataSpec {
  std::string kind = "fashion-mnist";  // fashion-mnist | mnist | cifar10 | cifar100 | text | synthetic | noise, or one that a program has registered
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

}  // namespace motley
