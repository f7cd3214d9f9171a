// Parts shared by the chief and the pipeline chief: the arguments of `motley chief`, the run folder, and the end of a run.
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
  bool from_scratch = false;  // even if there are checkpoints
  bool require_target = false;
  bool launched = false;  // started by `motley train`, which reads this process's stdout
  /// Prints a line for the launcher, if there is one.
  void tell_launcher(const std::string& line) const;
};

/// The address of a chief and the rules for connecting to it.
struct ChiefEndpoint {
  transport::Address address;
  transport::Options allowed;
  std::optional<runtime::RunToken> made;  // a token was generated because none was given
};
Result<ChiefEndpoint> chief_endpoint(const ChiefArguments& arguments, const std::filesystem::path& run, std::uint64_t slice_bytes);
/// The command to run on other terminals and machines, with the generated token.
std::string how_to_join(const std::string& command, const transport::Address& listening, const runtime::RunToken& token);
/// The folder of a run before its chief writes there.
class RunPlace {
 public:
  RunPlace(const ChiefArguments& arguments, const std::string& job_name);
  /// For a run that resumes: locks the folder and finds the checkpoint. `remarks` gets remarks for the user.
  Outcome find(const runtime::CheckpointRules& rules, std::vector<std::string>& remarks);
  /// Locks the folder, unless find() has, and sets aside the checkpoints that this run does not use.
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

/// A run that has ended, and the data to save.
struct Conclusion {
  const config::Job& job;
  engine::RunFolder& folder;
  const std::vector<std::string>& nodes;  // names by index, unlisted nodes after those of the job
  const ModelShape& shape;
  std::span<const float> values;  // the last whole model; empty: there is none
  const protocol::TrainingOutcome& outcome;
  double sum_of_parts = 0;
  std::optional<engine::PipelineFigures> pipeline{};
};

/// Writes model, results and report, prints the outcome, and returns the exit code.
int conclude(const ChiefArguments& arguments, const Conclusion& run);

/// Runs a pipeline chief, from the job to the exit code.
int run_pipeline_chief(const ChiefArguments& arguments, const std::string& job_text, const config::Job& job);

}  // namespace motley::cli
