// The door: arguments in, exit code out. Whatever was thrown at us, or by us, ends here.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>

#include "base/check.h"
#include "cli/commands.h"

int main(int argc, char** argv) {
  using motley::cli::ExitCode;
  std::signal(SIGXFSZ, SIG_IGN);  // a file at its limit is a write that fails, and is told as one
  try {
    CLI::App app("Motley trains one neural network on a motley cluster as fast as the sum of its parts.", "motley");
    app.require_subcommand(1);
    app.set_version_flag("--version", "motley 0.1.0");
    int exit_code = ExitCode::done;
    motley::cli::add_train(app, exit_code);
    motley::cli::add_simulate(app, exit_code);
    motley::cli::add_compare(app, exit_code);
    motley::cli::add_plan(app, exit_code);
    motley::cli::add_chief(app, exit_code);
    motley::cli::add_server(app, exit_code);
    motley::cli::add_stage(app, exit_code);
    motley::cli::add_worker(app, exit_code);
    motley::cli::add_replay(app, exit_code);
    motley::cli::add_doctor(app, exit_code);
    motley::cli::add_bench(app, exit_code);
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
      return app.exit(e) == 0 ? ExitCode::done : ExitCode::bad_input;
    }
    return exit_code;
  } catch (const motley::Bug& bug) {
    fmt::print(stderr, "motley has a bug: {}\nplease report this line together with the job\n", bug.what());
  } catch (const std::exception& e) {
    fmt::print(stderr, "motley has a bug: it did not expect this: {}\n", e.what());
  }
  return ExitCode::our_bug;
}
