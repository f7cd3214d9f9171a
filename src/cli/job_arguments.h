// The arguments of every command that takes a job: the file, --strategy, --seed, --set, --json.
#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/job.h"
#include "engine/training.h"

namespace motley::cli {

struct JobArguments {
  std::string file;
  std::optional<std::string> strategy;
  std::optional<std::uint64_t> seed;
  std::vector<std::string> overrides;
  bool json = false;

  /// `one`: also --strategy and --seed, for commands that run one strategy once.
  void add_to(CLI::App& command, bool one);
  /// The job with --set, --strategy and --seed applied. The file is searched under its name and with `.toml` appended.
  [[nodiscard]] Result<config::Job> read() const;
  /// The same as one text that needs no further arguments; see resolve_job().
  [[nodiscard]] Result<std::string> resolve() const { return config::resolve_job(file, overrides, strategy, seed, engine::known_kinds()); }
};

/// Prints the error to stderr; returns its exit code.
int fail(const Error& error);

}  // namespace motley::cli
