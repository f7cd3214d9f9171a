// How processes of a cluster find and trust each other: the arguments that serve, work and train have in common.
#pragma once
#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "transport/options.h"

namespace motley::app {

struct DoorArguments {
  std::string token_file;
  void add_to(CLI::App& command);
  /// --token-file, or MOTLEY_TOKEN; empty when there is neither. One line is taken, without what surrounds it.
  [[nodiscard]] Result<std::string> token() const;
};

/// What connections of a job are allowed: windows by its slices.
[[nodiscard]] transport::Options transport_options(const std::string& token, std::uint64_t slice_bytes);

}  // namespace motley::app
