// motley bench WHAT: micro benchmarks.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <boost/json/serialize.hpp>
#include <memory>
#include <string>
#include <utility>

#include "app/bench.h"
#include "app/commands.h"

namespace motley::app {
namespace {

void print(const boost::json::object& figures, bool json) {
  if (json) {
    fmt::print("{}\n", boost::json::serialize(figures));
    return;
  }
  for (const auto& [key, value] : figures)
    fmt::print("{:<40} {:.6g}\n", std::string_view(key.data(), key.size()), value.to_number<double>());
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  struct Benchmark {
    const char* name;
    const char* what;
    boost::json::object (*run)();
  };
  static constexpr std::array<Benchmark, 4> benchmarks{{{"sim", "events per second of the simulator", bench_sim},
                                                        {"policy", "cost of a decision of each strategy", bench_policy},
                                                        {"store", "speed of applying updates, beside a stream triad", bench_store},
                                                        {"transport", "a round trip of all parameters, beside bare TCP", bench_transport}}};
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("bench", "micro benchmarks");
  command->require_subcommand(1);
  for (const Benchmark& benchmark : benchmarks) {
    CLI::App* one = command->add_subcommand(benchmark.name, benchmark.what);
    one->add_flag("--json", *json, "print one JSON object on stdout and nothing else there");
    one->callback([&benchmark, json, &exit_code] {
      print(benchmark.run(), *json);
      exit_code = ExitCode::done;
    });
  }
}

}  // namespace motley::app
