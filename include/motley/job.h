// Job: how to train, on which nodes, with which strategy; docs/job.md lists its keys.
#pragma once
#include <motley/export.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace motley {

struct Job {
  std::string text{};                    // TOML, without [model] and [data]: those are the Objective's
  std::string name = "job";              // in messages
  std::vector<std::string> overrides{};  // "a.b=c", as `motley train --set`
  std::string strategy{};                // such as "hps" or "ssp:bound=2"; empty: as the text says
  std::optional<std::uint64_t> seed{};   // empty: as the text says
};

/// The text of a file as a job. Throws Failure when it cannot be read.
MOTLEY_API Job read_job(const std::filesystem::path& file);

}  // namespace motley
