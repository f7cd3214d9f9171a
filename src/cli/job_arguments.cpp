#include "cli/job_arguments.h"

#include <fmt/format.h>

#include <cstdio>

#include "cli/commands.h"

namespace motley::cli {

void JobArguments::add_to(CLI::App& command, bool one) {
  command.add_option("JOB", file, "job file (TOML)")->required();
  if (one) {
    command.add_option("--strategy", strategy, "strategy with its knobs, such as ssp or local-sgd:steps=16 (default: the job's)");
    command.add_option("--seed", seed, "seed of all random numbers (default: the job's)");
  }
  command.add_option("--set", overrides, "override a key of the job: a.b=c (repeatable)")->take_all();
  command.add_flag("--json", json, "print one JSON object on stdout and nothing else there");
}

Result<config::Job> JobArguments::read() const {
  auto job = config::read_job(file, overrides, engine::known_kinds());
  if (!job) return job.error();
  if (seed) job->seed = *seed;
  if (strategy) {
    auto spec = config::read_strategy(*job, *strategy);
    if (!spec) return spec.error();
    job->strategy = std::move(*spec);
  }
  return job;
}

int fail(const Error& error) {
  fmt::print(stderr, "{}\n", error.message);
  switch (error.next) {
    case Next::tell_user: return ExitCode::bad_input;
    case Next::drop_peer:
    case Next::give_up: return ExitCode::cluster_failed;
  }
  return ExitCode::our_bug;
}

}  // namespace motley::cli
