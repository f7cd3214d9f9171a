// motley compare JOB --strategies a,b,c: runs several strategies over several seeds on all cores; prints a table and writes report.html.
#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "cli/commands.h"
#include "cli/job_arguments.h"
#include "cli/real_comparison.h"
#include "config/job_seeds.h"
#include "engine/results.h"
#include "engine/run_folder.h"
#include "engine/simulation.h"
#include "report/json_text.h"
#include "report/page.h"
#include "report/pipeline_chart.h"
#include "report/progress_bar.h"
#include "report/table.h"

namespace motley::cli {
namespace {

struct CompareArguments {
  JobArguments job;
  std::string strategies;
  std::string seeds = "3";
  std::string out;
  bool real = false;
};

struct Entry {
  std::string label;
  policy::StrategySpec spec;
};

Result<std::vector<Entry>> read_entries(const config::Job& job, const std::string& list) {
  std::vector<Entry> entries;
  for (std::size_t from = 0; from <= list.size();) {
    const std::size_t comma = std::min(list.find(',', from), list.size());
    const std::string text = list.substr(from, comma - from);
    auto spec = config::read_strategy(job, text);
    if (!spec) return spec.error();
    entries.push_back({text, std::move(*spec)});
    from = comma + 1;
  }
  return entries;
}

/// Runs each strategy and seed separately, as many at once as there are cores. Results by strategy, then by seed.
Result<std::vector<engine::RunResult>> run_all(const config::Job& job, const engine::Material& material, const std::vector<Entry>& entries,
                                               const std::vector<std::uint64_t>& seeds) {
  const std::size_t count = entries.size() * seeds.size();
  std::vector<std::optional<Result<engine::RunResult>>> results(count);
  report::ProgressBar bar(job.name, count);
  std::atomic<std::size_t> next{0};
  std::mutex thrown_mutex;
  std::exception_ptr thrown;
  const auto work = [&] {
    learn::use_threads(1);
    for (std::size_t i = next++; i < count; i = next++) {
      const Entry& entry = entries[i / seeds.size()];
      engine::SimulationOptions options;
      options.strategy = entry.spec;
      options.label = entry.label;
      options.seed = seeds[i % seeds.size()];
      options.progress = [&bar, i](double share) { bar.at(i, share); };
      try {
        results[i] = engine::simulate(job, material, options);
      } catch (...) {  // an exception must not leave its thread
        const std::lock_guard lock(thrown_mutex);
        thrown = std::current_exception();
        return;
      }
      bar.at(i, 1);
    }
  };
  std::vector<std::thread> threads;
  const std::size_t cores = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, count);
  for (std::size_t t = 0; t < cores; ++t) threads.emplace_back(work);
  for (auto& thread : threads) thread.join();
  if (thrown) std::rethrow_exception(thrown);

  std::vector<engine::RunResult> runs;
  for (auto& result : results) {
    if (!*result) return result->error();
    runs.push_back(std::move(**result));
  }
  return runs;
}

Result<std::filesystem::path> write_report(const std::filesystem::path& folder, const report::Comparison& table, const std::string& json) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream file(folder / name, std::ios::binary);
    file << text;
    file.close();
    return file.good();
  };
  if (failed || !write("report.html", report::page(table)) || !write("compare.json", json + "\n") ||
      !write("accuracy.svg", report::accuracy_svg(table)) || !write("table.md", report::markdown_table(table)))
    return bad_input(
        fmt::format("the report cannot be written to {}; expected a writable folder (choose one with --out)", folder.string()));
  for (std::size_t i = 0; i < table.rows.size(); ++i)
    if (report::has_pipeline(table.rows[i])) (void)write(fmt::format("lanes-{}.svg", i).c_str(), report::pipeline_svg(table.rows[i], i));
  return folder / "report.html";
}

/// Names each run that failed; its figures are in the table as well. Returns the number.
std::size_t failures(const std::vector<engine::RunResult>& runs) {
  std::size_t count = 0;
  for (const engine::RunResult& run : runs) {
    if (!engine::failed(run.outcome.why)) continue;
    ++count;
    fmt::print(stderr, "{}, seed {}: training failed after {:.1f} s: {}\n", run.label, run.seed, seconds(run.outcome.ended),
               engine::ended_sentence(run.outcome.why));
  }
  return count;
}

int run(const CompareArguments& arguments) {
  const auto job = arguments.job.read();
  if (!job) return fail(job.error());
  const auto entries = read_entries(*job, arguments.strategies);
  if (!entries) return fail(entries.error());
  const auto seeds = config::read_seeds(arguments.seeds);
  if (!seeds) return fail(seeds.error());
  const auto material = engine::load_material(*job);
  if (!material) return fail(material.error());

  auto runs = run_all(*job, *material, *entries, *seeds);
  if (!runs) return fail(runs.error());
  std::string command =
      fmt::format("motley compare {} --strategies {} --seeds {}", arguments.job.file, arguments.strategies, arguments.seeds);
  for (const std::string& set : arguments.job.overrides) command += fmt::format(" --set '{}'", set);
  const report::Comparison table = engine::comparison(*job, *runs, *seeds, std::move(command));
  const std::filesystem::path folder = arguments.out.empty() ? engine::new_run_folder(job->name) : std::filesystem::path(arguments.out);
  boost::json::object figures = engine::comparison_json(table);
  std::string beside;
  if (arguments.real) {
    std::vector<std::string> labels;
    for (const Entry& entry : *entries) labels.push_back(entry.label);
    const auto real = train_for_real(arguments.job, labels, *seeds, *runs, job->target_accuracy, folder);
    if (!real) return fail(real.error());
    figures["real"] = real_json(*real);
    beside = "\n" + real_text(*real);
  }
  const std::string json = report::json_text(figures);
  const auto report = write_report(folder, table, json);
  if (!report) return fail(report.error());
  if (arguments.job.json) {
    fmt::print("{}\n", json);
    fmt::print(stderr, "report: {}\n", report->string());
  } else {
    fmt::print("{}{}\nreport: {}\n", report::text_table(table), beside, report->string());
  }
  return failures(*runs) == 0 ? ExitCode::done : ExitCode::cluster_failed;
}

}  // namespace

void add_compare(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<CompareArguments>();
  CLI::App* command =
      app.add_subcommand("compare", "simulate several strategies over several seeds; prints a table and writes report.html");
  arguments->job.add_to(*command, false);
  command
      ->add_option("--strategies", arguments->strategies, "comma-separated, each with optional knobs: bsp,ssp:bound=2,local-sgd:steps=16")
      ->required();
  command->add_option("--seeds", arguments->seeds, "a count or a range: 5 means 0 to 4, 10..12 means 10, 11 and 12")->capture_default_str();
  command->add_flag("--real", arguments->real, "also train each with real processes, one after the other, and compare with the simulation");
  command->add_option("--out", arguments->out, "folder of the report (default: runs/JOB-TIME)");
  command->callback([arguments, &exit_code] { exit_code = run(*arguments); });
}

}  // namespace motley::cli
