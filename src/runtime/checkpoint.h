// Checkpoints on disk: one safetensors file each, with a checksum over all of it, and `latest`, a text file that names the newest.
//
//   VERSION.safetensors
//     tensors: the model's by name; optimizer.first.NAME, optimizer.second.NAME (adamw) of each parameter
//     metadata: "motley.chief" := JSON, see checkpoint_state.h; "motley.rest" := JSON {optimizer_updates, rate};
//               "motley.job" := SHA-256 of the resolved job's text; "sha256" := see store/safetensors.h
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/chief_hooks.h"
#include "runtime/shard_host.h"
#include "store/safetensors.h"

namespace motley::runtime {

struct Restored {
  InitialState initial_state;
  protocol::ChiefState chief;
  std::filesystem::path file;
};

/// The conditions under which a run can continue from a checkpoint.
struct CheckpointRules {
  const ModelShape& model;
  std::string job_sha256;
  bool second = false;   // the optimizer has second moments
  double most_rate = 0;  // the largest learning rate of the job
  /// Whether this training can have had this state. May take over a state that it accepts.
  std::function<Outcome(const protocol::ChiefState&)> fits;
};

struct FoundCheckpoint {
  std::optional<Restored> newest;                  // none: there has never been a checkpoint
  std::vector<std::filesystem::path> passed_over;  // newer ones that cannot be used
  std::vector<std::string> words;                  // for the user: the files passed over and the reasons
};

/// Writes folder/VERSION.safetensors and points `latest` at it, atomically. When both are on the disk, all but the two newest are removed.
Outcome save_checkpoint(const std::filesystem::path& folder, const ModelShape& model, const Saved& saved, const std::string& job_sha256);

/// Finds the newest checkpoint that is whole. Refused when there are checkpoints and none can be used. Changes no file.
Result<FoundCheckpoint> find_checkpoint(const std::filesystem::path& folder, const CheckpointRules& rules);

/// All files of a folder of checkpoints, newest first; and `latest`. None: there is no such folder.
Result<std::vector<std::filesystem::path>> checkpoint_files(const std::filesystem::path& folder);

}  // namespace motley::runtime
