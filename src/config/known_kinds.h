// KnownKinds: the names of models, data sets and losses that a job file may use.
#pragma once
#include <string>
#include <vector>

namespace motley::config {

/// An empty list accepts every name: the registry refuses unknown names later, but cannot name the line of the file.
struct KnownKinds {
  std::vector<std::string> models;
  std::vector<std::string> data_sets;
  std::vector<std::string> losses;
};

}  // namespace motley::config
