// Checkpoints on disk: one safetensors file each, and `latest`, which names the newest whole one.
//
//   tensors: the model's by name; optimizer.first.NAME, optimizer.second.NAME (adamw) of each parameter
//   metadata: "motley.chief" := JSON, see checkpoint_state.h; "motley.rest" := JSON {optimizer_updates, rate};
//             "motley.job" := SHA-256 of the resolved job's text
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"
#include "learn/learner.h"
#include "run/chief_process.h"

namespace motley::app {

struct Restored {
  run::Beginning beginning;
  protocol::ChiefState chief;
  std::filesystem::path file;
};

/// Writes folder/VERSION.safetensors and points `latest` at it, atomically; all but the two newest are removed.
Outcome save_checkpoint(const std::filesystem::path& folder, const learn::ModelShape& shape, const run::Saved& saved,
                        const std::string& job_sha256);

/// What `latest` points at. None: there is no checkpoint. A damaged file, or one of another model or job, is refused.
Result<std::optional<Restored>> load_checkpoint(const std::filesystem::path& folder, const learn::ModelShape& shape,
                                                const std::string& job_sha256);

}  // namespace motley::app
