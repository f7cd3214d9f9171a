// motley bench WHAT: micro benchmarks.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <memory>
#include <string>
#include <utility>

#include "bench/bench.h"
#include "bench/bench_mixed.h"
#include "cli/commands.h"
#include "cli/connection_arguments.h"
#include "cli/job_arguments.h"
#include "report/json_text.h"

namespace motley::cli {
namespace {

void print(const boost::json::object& figures, bool json) {
  if (json) {
    fmt::print("{}\n", report::json_text(figures));
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

void add_mixed(CLI::App& bench, int& exit_code) {
  struct Asked {
    bench::MixedOptions options;
    bool json = false;
  };
  auto asked = std::make_shared<Asked>();
  CLI::App* command = bench.add_subcommand("mixed", "throughput of unlike devices together, compared with the sum of each alone");
  bench::MixedOptions& options = asked->options;
  command
      ->add_option("--partitions", options.partitions, "percent of the GPU for each worker; without a GPU, samples/s of emulated devices")
      ->delimiter(',')
      ->check(CLI::Range(1, 100));
  command->add_option("--cpus", options.cpus, "additional CPU workers: threads of each")->delimiter(',')->check(CLI::Range(1, 1024));
  command->add_option("--model", options.model, "kind of model")->capture_default_str();
  command->add_option("--precision", options.precision, "fp32, tf32 or bf16")->capture_default_str();
  command->add_option("--strategies", options.strategies, "strategies with their knobs, comma-separated")->delimiter(',');
  command->add_option("--global", options.global_batch, "samples of a global batch")->check(CLI::Range(1, 1 << 20))->capture_default_str();
  command->add_option("--seconds", options.seconds, "length of each measurement")->check(CLI::Range(0.1, 600.0))->capture_default_str();
  command->add_flag("--emulated", options.emulated, "use emulated devices even if there is a GPU");
  command->add_option("--set", options.overrides, "override a key of the job: a.b=c (repeatable)");
  command->add_option("--out", options.keep, "keep the run folders, one per strategy, in this folder");
  command->add_flag("--json", asked->json, "print one JSON object on stdout and nothing else there");
  command->callback([asked, &exit_code] {
    const auto figures = bench::bench_mixed(asked->options);
    if (!figures) {
      exit_code = fail(figures.error());
      return;
    }
    if (asked->json) fmt::print("{}\n", report::json_text(*figures));
    exit_code = ExitCode::done;
  });
}

/// A subcommand that bench mixed starts; not for users.
void add_alone(CLI::App& bench, int& exit_code) {
  struct Asked {
    std::string job, node;
    std::uint32_t batch = 1;
  };
  auto asked = std::make_shared<Asked>();
  CLI::App* command = bench.add_subcommand("alone", "")->group("");
  command->add_option("job", asked->job)->required();
  command->add_option("--node", asked->node)->required();
  command->add_option("--batch", asked->batch)->required();
  command->callback([asked, &exit_code] {
    const Outcome computed = bench::compute_alone(asked->job, asked->node, asked->batch);
    exit_code = computed ? ExitCode::done : fail(computed.error());
  });
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  struct Benchmark {
    const char* name;
    const char* what;
    boost::json::object (*run)();
  };
  static constexpr std::array<Benchmark, 4> benchmarks{
      {{"sim", "events per second of the simulator", bench::bench_sim},
       {"policy", "time per decision of each strategy", bench::bench_policy},
       {"store", "rate of applying updates, compared with a stream triad", bench::bench_store},
       {"codec", "rate of encoding and decoding, compared with memcpy", bench::bench_codec}}};
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
  CLI::App* transport_command = command->add_subcommand("transport", "round trip of all parameters, compared with bare TCP and memcpy");
  transport_command->add_flag("--json", *json, "print one JSON object on stdout and nothing else there");
  auto bulk = std::make_shared<BulkArgument>();
  bulk->add_to(*transport_command);
  transport_command->callback([bulk, json, &exit_code] {
    const auto choice = bulk->choice();
    if (!choice) {
      exit_code = fail(choice.error());
      return;
    }
    print(*choice == transport::Bulk::tcp ? bench::bench_transport_tcp() : bench::bench_transport(), *json);
    exit_code = ExitCode::done;
  });
  add_mixed(*command, exit_code);
  add_alone(*command, exit_code);
}

}  // namespace motley::cli
