// The commands of the program, one file each. Each function adds one command; the chosen command sets `exit_code`.
#pragma once
#include "runtime/exit_code.h"

namespace CLI {
class App;
}

namespace motley::cli {

using runtime::ExitCode;

void add_train(CLI::App& app, int& exit_code);
void add_chief(CLI::App& app, int& exit_code);
void add_server(CLI::App& app, int& exit_code);
void add_stage(CLI::App& app, int& exit_code);
void add_worker(CLI::App& app, int& exit_code);
void add_replay(CLI::App& app, int& exit_code);
void add_simulate(CLI::App& app, int& exit_code);
void add_compare(CLI::App& app, int& exit_code);
void add_plan(CLI::App& app, int& exit_code);
void add_doc(CLI::App& app, int& exit_code);
void add_doctor(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);

}  // namespace motley::cli
