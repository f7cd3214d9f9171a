// The door: arguments in, exit code out. Whatever was thrown at us, or by us, ends here.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>

#include "app/commands.h"
#include "base/check.h"

int main(int argc, char** argv) {
  using motley::app::ExitCode;
  std::signal(SIGXFSZ, SIG_IGN);  // a file at its limit is a write that fails, and is told as one
  try {
    CLI::App app("Motley trains one neural network on a motley cluster as fast as the sum of its parts.", "motley");
    app.require_subcommand(1);
    app.set_version_flag("--version", "motley 0.1.0");
    int exit_code = ExitCode::done;
    motley::app::add_train(app, exit_code);
    motley::app::add_simulate(app, exit_code);
    motley::app::add_compare(app, exit_code);
    motley::app::add_plan(app, exit_code);
    motley::app::add_serve(app, exit_code);
    motley::app::add_hold(app, exit_code);
    motley::app::add_stage(app, exit_code);
    motley::app::add_work(app, exit_code);
    motley::app::add_replay(app, exit_code);
    motley::app::add_doctor(app, exit_code);
    motley::app::add_bench(app, exit_code);
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
