// The command line: arguments in, exit code out. No exception leaves main().
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "cli/commands.h"

namespace {

/// Commands of older versions: the error names the present one.
std::string_view renamed_command(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 3> renamed{
      {{"serve", "chief"}, {"hold", "server"}, {"work", "worker"}}};
  for (const auto& [before, now] : renamed)
    if (before == name) return now;
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  using motley::cli::ExitCode;
  std::signal(SIGXFSZ, SIG_IGN);  // writing beyond the file size limit then returns an error instead of ending the process
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
    motley::cli::add_doc(app, exit_code);
    motley::cli::add_doctor(app, exit_code);
    motley::cli::add_bench(app, exit_code);
    if (const std::string_view now = argc > 1 ? renamed_command(argv[1]) : std::string_view{}; !now.empty()) {
      fmt::print(stderr, "motley {0}: found a command of an older version, expected motley {1}; {0} is now called {1}\n", argv[1], now);
      return ExitCode::bad_input;
    }
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
      return app.exit(e) == 0 ? ExitCode::done : ExitCode::bad_input;
    }
    return exit_code;
  } catch (const motley::Bug& bug) {
    fmt::print(stderr, "motley has a bug: {}\nplease report this line and the job file\n", bug.what());
  } catch (const std::exception& e) {
    fmt::print(stderr, "motley has a bug: unexpected exception: {}\n", e.what());
  }
  return ExitCode::our_bug;
}
