// motley train JOB: trains with real processes on this machine, one chief and its workers.
#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>

#include "cli/commands.h"
#include "cli/connection_arguments.h"
#include "cli/job_arguments.h"
#include "config/pipeline_strategy.h"
#include "engine/pipeline_training.h"
#include "engine/run_folder.h"
#include "report/json_text.h"
#include "runtime/folder_lock.h"
#include "runtime/launcher.h"

namespace motley::cli {
namespace {

struct TrainArguments {
  JobArguments job;
  std::string out;
  std::uint64_t checkpoint_every = 500;
  BulkArgument bulk;
  bool resume = false;
  bool from_scratch = false;
  bool respawn = false;
  bool require_target = false;
};

/// The folder to resume: JOB may be the folder of a run, or --out names it.
Result<std::filesystem::path> folder_of(const TrainArguments& arguments, const config::Job& job) {
  if (!arguments.out.empty()) return std::filesystem::path(arguments.out);
  if (!arguments.resume) return engine::new_run_folder(job.name);
  return bad_input("--resume: found no folder of a run, expected `motley train RUN --resume` with the run's folder, or --out RUN");
}

int print_result(const std::filesystem::path& folder, const runtime::LaunchOutcome& launched, bool json) {
  std::ifstream file(folder / "result.json");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (launched.reported.empty()) return launched.chief_code;  // the chief did not reach its end, and results in the folder are older
  boost::system::error_code torn;
  const boost::json::value parsed = boost::json::parse(text, torn);
  if (json && !torn && parsed.is_object()) {
    boost::json::object result = parsed.get_object();
    boost::json::object peaks;
    for (const auto& [name, bytes] : launched.peak_rss_bytes) peaks[name] = bytes;
    result["peak_rss_bytes"] = std::move(peaks);
    result["deaths"] = launched.deaths;
    result["run"] = folder.string();
    fmt::print("{}\n", report::json_text(result));
  }
  if (!json) {
    for (const std::string& line : launched.reported) fmt::print("{}\n", line);
    if (std::filesystem::exists(folder / "report.html")) fmt::print("report: {}\n", (folder / "report.html").string());
    fmt::print("run: {}\n", folder.string());
  }
  return launched.chief_code;
}

int train(TrainArguments arguments) {
  if (arguments.resume && std::filesystem::is_directory(arguments.job.file)) {
    arguments.out = arguments.job.file;
    arguments.job.file = (std::filesystem::path(arguments.out) / "job.toml").string();
  }
  if (const auto bulk = arguments.bulk.choice(); !bulk) return fail(bulk.error());
  const auto text = arguments.job.resolve();
  if (!text) return fail(text.error());
  const auto job = config::parse_job(*text, arguments.job.file);
  if (!job) return fail(job.error());
  if (arguments.require_target && !job->target_accuracy)
    return fail(
        bad_input(fmt::format("{}: job.target_accuracy: found none, expected a target because of --require-target", job->file.string())));
  const auto folder = folder_of(arguments, *job);
  if (!folder) return fail(folder.error());
  if (!arguments.resume)  // before the lock, which is a file in the folder
    if (const Outcome free = engine::is_free_for_a_run(*folder); !free) return fail(free.error());
  const auto locked = runtime::FolderLock::take(*folder, runtime::run_lock);
  if (!locked) return fail(locked.error());
  if (arguments.resume) {
    const auto began_with = config::resolve_job(*folder / "job.toml", {}, std::nullopt, std::nullopt);
    if (!began_with) return fail(began_with.error());
    // A pipeline may resume with another cut.
    const bool same =
        config::is_pipeline(job->strategy) ? engine::learning_sha256(*began_with) == engine::learning_sha256(*text) : *began_with == *text;
    if (!same)
      return fail(bad_input(fmt::format("--resume: found another job than the one that {} began with, expected the same, which is {}",
                                        folder->string(), (*folder / "job.toml").string())));
    if (const Outcome written = engine::rewrite_run_job(*folder, *text); !written) return fail(written.error());
  } else if (const Outcome written = engine::write_run_job(*folder, *text); !written) {
    return fail(written.error());
  }
  runtime::LauncherOptions options;
  options.cluster = job->cluster;
  options.pipeline = config::is_pipeline(job->strategy);
  options.folder = *folder;
  options.checkpoint_every = arguments.checkpoint_every;
  options.bulk = arguments.bulk.name;
  options.resume = arguments.resume;
  options.from_scratch = arguments.from_scratch;
  options.respawn = arguments.respawn;
  options.require_target = arguments.require_target;
  runtime::Launcher launch(std::move(options));
  const auto launched = launch.run();
  if (!launched) return fail(launched.error());
  return print_result(*folder, *launched, arguments.job.json);
}

}  // namespace

void add_train(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<TrainArguments>();
  CLI::App* command = app.add_subcommand("train", "train with real processes on this machine: one chief and its workers");
  arguments->job.add_to(*command, true);
  command->add_option("--out", arguments->out, "folder of the run (default: runs/JOB-TIME)");
  command->add_option("--checkpoint-every", arguments->checkpoint_every, "updates between checkpoints; 0: only when interrupted")
      ->capture_default_str();
  arguments->bulk.add_to(*command);
  CLI::Option* resume =
      command->add_flag("--resume", arguments->resume, "continue from the newest complete checkpoint; JOB may be the folder of the run");
  command->add_flag("--from-scratch", arguments->from_scratch, "with --resume: start from the beginning; the checkpoints are set aside")
      ->needs(resume);
  command->add_flag("--respawn", arguments->respawn, "restart processes that die, up to five times without progress");
  command->add_flag("--require-target", arguments->require_target, "exit with code 4 when the target accuracy is not reached");
  command->callback([arguments, &exit_code] { exit_code = train(*arguments); });
}

}  // namespace motley::cli
