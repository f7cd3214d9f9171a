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
  for (const auto& [key, value] : figures) {
    const std::string_view name(key.data(), key.size());
    if (const boost::json::string* word = value.if_string())
      fmt::print("{:<44} {}\n", name, std::string_view(*word));
    else
      fmt::print("{:<44} {:.6g}\n", name, value.to_number<double>());
  }
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  struct Benchmark {
    const char* name;
    const char* what;
    boost::json::object (*run)();
  };
  static constexpr std::array<Benchmark, 5> benchmarks{{{"sim", "events per second of the simulator", bench_sim},
                                                        {"policy", "cost of a decision of each strategy", bench_policy},
                                                        {"store", "speed of applying updates, beside memcpy", bench_store},
                                                        {"codec", "speed of encoding and decoding, beside memcpy", bench_codec},
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
