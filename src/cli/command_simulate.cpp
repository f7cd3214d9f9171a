// motley simulate JOB: runs the job in virtual time, with real gradients.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <memory>

#include "cli/commands.h"
#include "cli/job_arguments.h"
#include "engine/results.h"
#include "engine/simulation.h"
#include "report/json_text.h"

namespace motley::cli {
namespace {

struct SimulateArguments {
  JobArguments job;
  bool require_target = false;
  std::string trace_file;
};

int run(const SimulateArguments& arguments) {
  const auto job = arguments.job.read();
  if (!job) return fail(job.error());
  if (arguments.require_target && !job->target_accuracy)
    return fail(
        bad_input(fmt::format("{}: job.target_accuracy: found none, expected a target because of --require-target", job->file.string())));
  const auto material = engine::load_material(*job);
  if (!material) return fail(material.error());

  std::ofstream file;
  std::unique_ptr<trace::Writer> writer;
  if (!arguments.trace_file.empty()) {
    file.open(arguments.trace_file, std::ios::binary);
    if (!file)
      return fail(bad_input(
          fmt::format("--trace {}: the file cannot be written; expected a path in an existing, writable folder", arguments.trace_file)));
    writer = std::make_unique<trace::Writer>([&](std::span<const std::byte> block) {
      file.write(reinterpret_cast<const char*>(block.data()), static_cast<std::streamsize>(block.size()));
    });
  }
  learn::use_threads(1);
  engine::SimulationOptions options;
  options.strategy = job->strategy;
  options.label = arguments.job.strategy.value_or(job->strategy.kind);
  options.seed = job->seed;
  options.also = writer.get();
  const auto result = engine::simulate(*job, *material, options);
  if (!result) return fail(result.error());
  if (writer) {
    (void)writer->finish();
    file.close();
    if (!file) return fail(world_failed(fmt::format("--trace {}: writing failed; is the disk full?", arguments.trace_file)));
  }

  if (arguments.job.json)
    fmt::print("{}\n", report::json_text(engine::run_json(*job, *result)));
  else
    fmt::print("{}", engine::run_text(*job, *result));
  if (engine::failed(result->outcome.why)) {
    fmt::print(stderr, "{}: training failed, see above\n", job->name);
    return ExitCode::cluster_failed;
  }
  if (arguments.require_target && !trace::time_to_target(result->summary.curve(), *job->target_accuracy)) {
    fmt::print(stderr, "{}: target accuracy {} was not reached\n", job->name, *job->target_accuracy);
    return ExitCode::target_missed;
  }
  return ExitCode::done;
}

}  // namespace

void add_simulate(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<SimulateArguments>();
  CLI::App* command = app.add_subcommand("simulate", "run the job in virtual time, with real gradients");
  arguments->job.add_to(*command, true);
  command->add_flag("--require-target", arguments->require_target, "exit with code 4 when the target accuracy is not reached");
  command->add_option("--trace", arguments->trace_file, "write every event to this file (binary)");
  command->callback([arguments, &exit_code] { exit_code = run(*arguments); });
}

}  // namespace motley::cli
