// motley doctor: checks this machine and says how to get what is missing.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/doctor.h"

namespace motley::cli {

void add_doctor(CLI::App& app, int& exit_code) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("doctor", "check this machine: what is present, what is missing, how to get it");
  command->add_flag("--json", *json, "print one JSON object on stdout and nothing else there");
  command->callback([json, &exit_code] {
    const Facts facts = gather_facts();
    const std::vector<Finding> findings = assess(facts);
    if (*json)
      fmt::print("{}\n", to_json(facts, findings));
    else
      fmt::print("{}", to_text(findings));
    exit_code = ExitCode::done;
  });
}

}  // namespace motley::cli
