#include "cli/chief_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <utility>

#include "cli/commands.h"
#include "engine/results.h"
#include "report/json_text.h"
#include "report/table.h"
#include "store/safetensors.h"

namespace motley::cli {

void ChiefArguments::tell_launcher(const std::string& line) const {
  if (!launched) return;
  std::fputs((line + "\n").c_str(), stdout);  // fails when the launcher has ended; then no process reads the line
  std::fflush(stdout);
}

Result<ChiefEndpoint> chief_endpoint(const ChiefArguments& arguments, const std::filesystem::path& run, std::uint64_t slice_bytes) {
  auto allowed = arguments.connection.transport(slice_bytes);
  if (!allowed) return allowed.error();
  auto address = transport::parse_address(arguments.listen);
  if (!address) return address.error();
  ChiefEndpoint connection{std::move(*address), std::move(*allowed), std::nullopt};
  if (!arguments.connection.lacks_token(connection.address, connection.allowed)) return connection;
  auto made = runtime::RunToken::of(run);
  if (!made) return made.error();
  connection.allowed.token = made->secret();
  connection.made = std::move(*made);
  return connection;
}

std::string how_to_join(const std::string& command, const transport::Address& listening, const runtime::RunToken& token) {
  return fmt::format("join with: motley {} --join {} --token-file {} (other machines need a copy of that file)", command,
                     to_text(listening), token.file().string());
}

RunPlace::RunPlace(const ChiefArguments& arguments, const std::string& job_name)
    : arguments_(arguments), path_(arguments.out.empty() ? engine::new_run_folder(job_name) : std::filesystem::path(arguments.out)) {}

/// When launched, the launcher holds the run's lock already.
Outcome RunPlace::lock() {
  for (auto [lock, name] : {std::pair(&run_, runtime::run_lock), std::pair(&chief_, runtime::chief_lock)}) {
    if (lock->held() || (lock == &run_ && arguments_.launched)) continue;
    auto taken = runtime::FolderLock::take(path_, name);
    if (!taken) return taken.error();
    *lock = std::move(*taken);
  }
  return Done{};
}

Outcome RunPlace::find(const runtime::CheckpointRules& rules, std::vector<std::string>& remarks) {
  if (const Outcome locked = lock(); !locked) return locked.error();
  if (arguments_.from_scratch) {
    auto files = runtime::checkpoint_files(checkpoints());
    if (!files) return files.error();
    not_used_ = std::move(*files);
    remarks.push_back(fmt::format("--from-scratch: starting from the beginning; {} checkpoints are set aside",
                                  std::count_if(not_used_.begin(), not_used_.end(), [](const auto& f) { return f.has_extension(); })));
    return Done{};
  }
  auto found = runtime::find_checkpoint(checkpoints(), rules);
  if (!found) return found.error();
  restored_ = std::move(found->newest);
  not_used_ = std::move(found->passed_over);
  for (const std::string& word : found->words) remarks.push_back(fmt::format("{}: {}", checkpoints().string(), word));
  if (!restored_) remarks.push_back(fmt::format("no checkpoint in {}: starting from the beginning", checkpoints().string()));
  return Done{};
}

Outcome RunPlace::open() {
  if (!arguments_.resume)  // before the locks, which are files in the folder
    if (const Outcome free = engine::is_free_for_a_run(path_); !free) return free;
  if (const Outcome locked = lock(); !locked) return locked.error();
  if (not_used_.empty()) return Done{};
  std::filesystem::path aside;
  for (int n = 1; aside.empty() || std::filesystem::exists(aside); ++n) aside = path_ / fmt::format("set-aside.{}", n);
  std::error_code failed;
  std::filesystem::create_directory(aside, failed);
  for (const std::filesystem::path& file : not_used_)
    if (!failed) std::filesystem::rename(file, aside / file.filename(), failed);
  if (failed) return world_failed(fmt::format("{}: checkpoints cannot be set aside there: {}", aside.string(), failed.message()));
  return Done{};
}

namespace {

std::string how_to_go_on(const ChiefArguments& arguments, const std::filesystem::path& folder) {
  if (arguments.launched) return fmt::format("motley train {} --resume", folder.string());
  return fmt::format("motley chief {} --out {} --resume", arguments.job.file, folder.string());
}

}  // namespace

int conclude(const ChiefArguments& arguments, const Conclusion& run) {
  const config::Job& job = run.job;
  const std::string command = fmt::format("motley train {}", (run.folder.path() / "job.toml").string());
  if (!run.values.empty() && run.outcome.why != protocol::EndReason::diverged) {  // a diverged model must not look like a result
    const Outcome written =
        store::write_safetensors(run.folder.path() / "model.safetensors", store::named_tensors(run.shape), run.values, {{"format", "pt"}});
    if (!written) run.folder.errors().failed("model.safetensors", written.error().message);
  }
  const engine::RunResult result = run.folder.finish(job, run.nodes, run.outcome, run.sum_of_parts, command, run.pipeline);
  const config::Job seen = engine::with_unlisted_nodes(job, run.nodes);
  if (arguments.launched) {
    std::istringstream text(engine::run_text(seen, result) + "\n" +
                            report::text_table(engine::comparison(seen, {result}, {job.seed}, command)));
    for (std::string line; std::getline(text, line);) arguments.tell_launcher("say " + line);
  } else if (arguments.job.json) {
    fmt::print("{}\n", report::json_text(engine::run_json(seen, result)));
  } else {
    fmt::print("{}run: {}\n", engine::run_text(seen, result), run.folder.path().string());
  }
  if (engine::failed(result.outcome.why)) {
    fmt::print(stderr, "{}: training failed after {:.1f} s: {}\n", job.name, seconds(result.outcome.ended),
               engine::ended_sentence(result.outcome.why));
    return ExitCode::cluster_failed;
  }
  if (result.outcome.why == protocol::EndReason::interrupted) {
    fmt::print(stderr, "{}: stopped on request after {:.1f} s, before its end; continue with: {}\n", job.name,
               seconds(result.outcome.ended), how_to_go_on(arguments, run.folder.path()));
    if (!run.folder.errors().none())
      fmt::print(stderr, "{}: {} could not be written completely ({}): the updates since the last checkpoint may be lost\n", job.name,
                 run.folder.path().string(), run.folder.errors().files());
    return ExitCode::stopped;
  }
  if (arguments.require_target && (!job.target_accuracy || !trace::time_to_target(result.summary.curve(), *job.target_accuracy))) {
    fmt::print(stderr, "{}: target accuracy {} was not reached\n", job.name, job.target_accuracy.value_or(0));
    return ExitCode::target_missed;
  }
  if (!run.folder.errors().none()) {
    fmt::print(stderr, "{}: trained to the end, but {} is incomplete: {}\n", job.name, run.folder.path().string(),
               run.folder.errors().files());
    return ExitCode::incomplete;
  }
  return ExitCode::done;
}

}  // namespace motley::cli
