// motley doc PAGE: prints reference pages that are generated from the program's own tables.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "config/job_reference.h"
#include "engine/training.h"
#include "wire/wire_reference.h"

namespace motley::cli {

void add_doc(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("doc", "print a reference page");
  command->require_subcommand(1);
  command->add_subcommand("job", "every key of a job file: type, default, limits, meaning (docs/job.md)")->callback([&exit_code] {
    fmt::print("{}", config::job_reference(engine::known_kinds()));
    exit_code = ExitCode::done;
  });
  command->add_subcommand("wire", "every message: kind, senders, fields, meaning (docs/wire.md)")->callback([&exit_code] {
    fmt::print("{}", wire::wire_reference());
    exit_code = ExitCode::done;
  });
}

}  // namespace motley::cli
