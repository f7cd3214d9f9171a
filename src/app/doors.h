// How processes of a cluster find and trust each other: the arguments that serve, work and train have in common.
#pragma once
#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "transport/options.h"

namespace motley::app {

/// --bulk: what carries slices.
struct BulkArgument {
  std::string name = "auto";
  void add_to(CLI::App& command);
  /// Refuses what this build does not have.
  [[nodiscard]] Result<transport::Bulk> choice() const;
};

struct DoorArguments {
  std::string token_file;
  BulkArgument bulk;
  void add_to(CLI::App& command);
  /// --token-file, or MOTLEY_TOKEN; empty when there is neither. One line is taken, without what surrounds it.
  [[nodiscard]] Result<std::string> token() const;
  /// What connections of a job are allowed: windows by its slices.
  [[nodiscard]] Result<transport::Options> transport(std::uint64_t slice_bytes) const;
};

}  // namespace motley::app
