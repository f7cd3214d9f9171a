// What chief and conductor have in common: what the user said to `motley chief`, and how a run is brought to its end.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/connection_arguments.h"
#include "cli/job_arguments.h"
#include "config/job.h"
#include "engine/run_folder.h"
#include "engine/run_result.h"
#include "learn/learner.h"
#include "runtime/checkpoint.h"
#include "runtime/folder_lock.h"
#include "runtime/run_token.h"

namespace motley::cli {

struct ChiefArguments {
  JobArguments job;
  ConnectionArguments connection;
  std::string listen = "127.0.0.1:0";
  std::string out;
  std::uint64_t checkpoint_every = 500;
  std::size_t store_threads = 0;
  bool resume = false;
  bool from_scratch = false;  // though there may be checkpoints
  bool require_target = false;
  bool launched = false;  // by `motley train`, which reads our stdout
  /// A line for the launcher, if there is one.
  void tell_launcher(const std::string& line) const;
};

/// Where a chief listens, and who may come.
struct ChiefEndpoint {
  transport::Address address;
  transport::Options allowed;
  std::optional<runtime::RunToken> made;  // nobody gave a token
};
Result<ChiefEndpoint> chief_endpoint(const ChiefArguments& arguments, const std::filesystem::path& run, std::uint64_t slice_bytes);
/// What the user is to call on other terminals and machines, with the token that was made.
std::string how_to_join(const std::string& command, const transport::Address& listening, const runtime::RunToken& token);
/// The folder of a run before its chief writes there.
class RunPlace {
 public:
  RunPlace(const ChiefArguments& arguments, const std::string& job_name);
  /// For a run that goes on: locks the folder and finds what to go on from. `words`: what the user should know of that.
  Outcome find(const runtime::CheckpointRules& rules, std::vector<std::string>& words);
  /// Locks it, if find() has not, and sets aside what this run does not go on from.
  Outcome open();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  [[nodiscard]] std::optional<runtime::Restored>& restored() { return restored_; }

 private:
  Outcome lock();

  const ChiefArguments& arguments_;
  std::filesystem::path path_;
  runtime::FolderLock run_, chief_;
  std::optional<runtime::Restored> restored_;
  std::vector<std::filesystem::path> not_used_;
};

/// A run that has ended, and what is to be left of it.
struct Conclusion {
  const config::Job& job;
  engine::RunFolder& folder;
  const std::vector<std::string>& nodes;  // names by index, strangers behind those of the job
  const ModelShape& shape;
  std::span<const float> values;  // the last whole model; empty: there is none
  const protocol::TrainingOutcome& outcome;
  double sum_of_parts = 0;
  std::optional<engine::PipelineFigures> pipeline{};
};

/// Writes model, results and report, says how it went, and returns the exit code.
int conclude(const ChiefArguments& arguments, const Conclusion& run);

/// A pipeline's conductor, from the job to the exit code.
int run_pipeline_chief(const ChiefArguments& arguments, const std::string& job_text, const config::Job& job);

}  // namespace motley::cli
