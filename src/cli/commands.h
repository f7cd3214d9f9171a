// The commands of the door, one file each. Each adds itself to the command line and leaves its exit code in `exit_code` when it was the one
// chosen.
#pragma once
#include <string>

namespace CLI {
class App;
}

namespace motley::cli {

/// 0 done, 2 bad job or arguments, 3 cluster failed, 4 target not reached with --require-target, 5 stopped on request (SIGTERM, Ctrl-C)
/// before the end, 6 trained to the end but the run's folder is incomplete, 70 our bug.
struct ExitCode {
  static constexpr int done = 0;
  static constexpr int bad_input = 2;
  static constexpr int cluster_failed = 3;
  static constexpr int target_missed = 4;
  static constexpr int stopped = 5;
  static constexpr int incomplete = 6;
  static constexpr int our_bug = 70;
};

void add_train(CLI::App& app, int& exit_code);
void add_chief(CLI::App& app, int& exit_code);
void add_server(CLI::App& app, int& exit_code);
void add_stage(CLI::App& app, int& exit_code);
void add_worker(CLI::App& app, int& exit_code);
void add_replay(CLI::App& app, int& exit_code);
void add_simulate(CLI::App& app, int& exit_code);
void add_compare(CLI::App& app, int& exit_code);
void add_plan(CLI::App& app, int& exit_code);
void add_doctor(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);

}  // namespace motley::cli
