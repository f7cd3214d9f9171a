// motley replay RUN: repeats a real run's decisions from the chief's recorded inputs, and reports the first one that differs.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>

#include "cli/commands.h"
#include "cli/job_arguments.h"
#include "config/pipeline_strategy.h"
#include "engine/pipeline_training.h"
#include "engine/run_folder.h"
#include "engine/training.h"
#include "report/json_text.h"
#include "runtime/inputs.h"

namespace motley::cli {
namespace {

struct ReplayArguments {
  std::string folder;
  bool json = false;
};

Result<runtime::Replayed> replay_incarnation(const config::Job& job, const engine::Material& material, const std::filesystem::path& folder,
                                             std::uint32_t incarnation) {
  auto training = engine::make_training(job, material, job.strategy);
  if (!training) return training.error();
  const auto began = engine::incarnation_start(folder, incarnation);
  if (!began) return began.error();
  training->chief.checkpoint_every = began->checkpoint_every;
  training->chief.start_deadline = engine::start_patience;
  protocol::Chief chief(training->chief, std::move(training->strategy), training->schedule);
  if (began->state)
    if (const Outcome fits = chief.resume(*began->state); !fits)
      return bad_input(fmt::format("{}: chief process {} began in a state that this training cannot have: {}", folder.string(), incarnation,
                                   fits.error().message));
  std::ifstream file(engine::inputs_of_incarnation(folder, incarnation), std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return runtime::replay(std::as_bytes(std::span(bytes)), chief);
}

int replay(const ReplayArguments& arguments) {
  const std::filesystem::path folder = arguments.folder;
  const auto job = config::read_job(folder / "job.toml", {});
  if (!job) return fail(job.error());
  if (config::is_pipeline(job->strategy))
    return fail(bad_input(
        fmt::format("{}: found the run of a pipeline ({}), expected one with a chief: the inputs of a pipeline chief are not recorded",
                    folder.string(), job->strategy.kind)));
  const auto material = engine::load_material(*job);
  if (!material) return fail(material.error());
  if (!std::filesystem::exists(engine::inputs_of_incarnation(folder, 0)))
    return fail(bad_input(
        fmt::format("{}: found no inputs.0.bin, expected the folder of a run of `motley train` or `motley chief`", folder.string())));
  std::uint64_t inputs = 0;
  std::uint32_t incarnations = 0;
  for (; std::filesystem::exists(engine::inputs_of_incarnation(folder, incarnations)); ++incarnations) {
    const auto replayed = replay_incarnation(*job, *material, folder, incarnations);
    if (!replayed) return fail(replayed.error());
    inputs += replayed->inputs;
    if (replayed->first_difference) {
      fmt::print(stderr, "{}: chief process {}: the decisions after input {} differ from those of the run\n", folder.string(), incarnations,
                 *replayed->first_difference);
      return ExitCode::cluster_failed;
    }
    if (!replayed->torn.empty())
      fmt::print(stderr, "{}: chief process {}: replayed {} inputs, the recording ends there because: {}\n", folder.string(), incarnations,
                 replayed->inputs, replayed->torn);
    if (replayed->damaged) return ExitCode::bad_input;
  }
  if (arguments.json)
    fmt::print("{}\n", report::json_text(boost::json::object{{"lives", incarnations}, {"inputs", inputs}, {"identical", true}}));
  else
    fmt::print("{}: replayed {} inputs of {} chief {}, every decision identical\n", folder.string(), inputs, incarnations,
               incarnations == 1 ? "process" : "processes");
  return ExitCode::done;
}

}  // namespace

void add_replay(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ReplayArguments>();
  CLI::App* command = app.add_subcommand("replay", "repeat a run's recorded decisions and require them to be identical");
  command->add_option("RUN", arguments->folder, "folder of a run")->required();
  command->add_flag("--json", arguments->json, "print one JSON object on stdout and nothing else there");
  command->callback([arguments, &exit_code] { exit_code = replay(*arguments); });
}

}  // namespace motley::cli
