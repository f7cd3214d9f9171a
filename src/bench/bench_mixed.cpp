#include "bench/bench_mixed.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/json/parse.hpp>
#include <charconv>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <set>

#include "config/job.h"
#include "config/pipeline_strategy.h"
#include "engine/process_setup.h"
#include "engine/run_folder.h"
#include "learn/learner.h"
#include "runtime/exit_code.h"
#include "runtime/gpu_shares.h"
#include "runtime/launcher.h"
#include "runtime/stopwatch.h"
#include "runtime/temporary_folder.h"
#include "trace/reading.h"

namespace motley::bench {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr double first_samples_per_second = 1000;  // of a GPU before it is measured
constexpr std::uint64_t epoch_samples = 16'384;    // few enough to be kept on every GPU
constexpr double fewest_updates = 8;               // of a run: a slow cluster gets the time for them
constexpr std::uint32_t alone_on_cpu = 16;         // samples of a step
constexpr double learning_rate = 1e-5;             // so small that the model, and so the statistics, stay constant: noise cannot be learned

/// Shares of the global batch, proportional to the partitions; a CPU gets a few samples.
std::vector<std::uint32_t> shares(const MixedOptions& options) {
  const double all = std::accumulate(options.partitions.begin(), options.partitions.end(), 0.0);
  std::vector<std::uint32_t> batches;
  for (const int part : options.partitions)
    batches.push_back(std::max(1U, static_cast<std::uint32_t>(std::lround(options.global_batch * part / all))));
  batches.resize(batches.size() + options.cpus.size(), alone_on_cpu);
  return batches;
}

/// A job over these devices that trains on noise.
std::string job_text(const MixedOptions& options, const std::vector<double>& speeds) {
  const bool small = options.emulated;  // emulated devices still compute their gradients on this machine
  const double sum = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  const double seconds = std::max(options.seconds, fewest_updates * options.global_batch / sum);
  const double epochs = 1.1 * seconds * sum / static_cast<double>(epoch_samples);  // more than fit into max_seconds
  std::string text = fmt::format(
      "[job]\nname = \"mixed\"\nmax_epochs = {:.6g}\nmax_seconds = {:.6g}\nevaluate_every = 1000000.0\n[model]\nkind = "
      "\"{}\"\nprecision = \"{}\"\n{}"
      "[data]\nkind = \"noise\"\nsamples = {}\nclasses = {}\npicture = [3, 32, 32]\n[optimizer]\nkind = \"sgd\"\nlr = {}\nmomentum = "
      "0.9\n"
      "[batch]\nglobal = {}\n[strategy]\nkind = \"bsp\"\n[cluster.link]\nbandwidth = \"20GB/s\"\nlatency_s = 0.00002\n",
      epochs, seconds, options.model, options.precision, small ? "width = 1\n" : "", epoch_samples, 100, learning_rate,
      options.global_batch);
  for (std::size_t i = 0; i < speeds.size(); ++i) {
    text += fmt::format("[[cluster.node]]\nname = \"part-{}\"\nsamples_per_second = {:.6g}\n", i + 1, speeds[i]);
    if (i >= options.partitions.size())
      text += fmt::format("device = \"cpu:{}\"\n", options.cpus[i - options.partitions.size()]);
    else if (!options.emulated)
      text += fmt::format("device = \"cuda:0\"\ngpu_percent = {}\n", options.partitions[i]);
  }
  return text;
}

Result<fs::path> write_job(const fs::path& folder, const std::string& name, const std::string& text) {
  const fs::path file = folder / name;
  std::ofstream out(file);
  out << text;
  if (!out.flush()) return world_failed(fmt::format("{}: cannot be written", file.string()));
  return file;
}

/// The last report of a child process, and the one at the beginning of the window.
struct Part {
  std::unique_ptr<runtime::Child> child;
  std::optional<std::pair<double, double>> first, last;  // clock, samples
  bool ended = false;
  bool failed = false;  // it ended before it was asked to
};

/// Ends the processes by a signal that they handle: one killed during a kernel leaves NVIDIA's sharing service (MPS) in a bad state.
void end_gently(boost::asio::io_context& event_loop, std::vector<Part>& parts) {
  constexpr auto patience = std::chrono::seconds(10);
  for (Part& part : parts) {
    part.failed = part.ended;
    if (!part.ended) part.child->signal(SIGTERM);
  }
  const auto until = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < until && std::any_of(parts.begin(), parts.end(), [](const Part& p) { return !p.ended; })) {
    event_loop.restart();
    event_loop.run_one_for(std::chrono::milliseconds(100));
  }
}

bool read_line(const std::string& line, std::pair<double, double>& out) {
  const std::size_t gap = line.find(' ');
  if (gap == std::string::npos) return false;
  const auto read = [](std::string_view text, double& number) {
    const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
    return failure == std::errc{} && stop == text.data() + text.size();
  };
  return read(std::string_view(line).substr(0, gap), out.first) && read(std::string_view(line).substr(gap + 1), out.second);
}

/// Samples per second of each part while all of them compute.
Result<std::vector<double>> measure_alone(const MixedOptions& options, const fs::path& job, const runtime::GpuShares* gpu) {
  constexpr auto patience = std::chrono::seconds(120);  // until the last one has begun
  boost::asio::io_context event_loop;
  const std::vector<std::uint32_t> batches = shares(options);
  std::vector<Part> parts(batches.size());
  boost::asio::steady_timer over(event_loop, patience);
  bool measuring = false;
  const auto end = [&](const boost::system::error_code& cancelled) {
    if (!cancelled) event_loop.stop();
  };
  over.async_wait(end);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    runtime::ChildOptions child;
    child.command = {runtime::this_program(),   "bench", "alone", job.string(), "--node", fmt::format("part-{}", i + 1), "--batch",
                     std::to_string(batches[i])};
    const bool on_cpu = i >= options.partitions.size();
    const std::string threads = std::to_string(on_cpu ? options.cpus[i - options.partitions.size()] : 1);
    child.environment = {{"OMP_NUM_THREADS", threads}, {"OPENBLAS_NUM_THREADS", threads}};
    if (gpu != nullptr && !on_cpu)
      for (auto& variable : gpu->environment(options.partitions[i])) child.environment.push_back(std::move(variable));
    const auto received = [&, i](const std::string& line) {
      std::pair<double, double> now;
      if (!read_line(line, now)) return;
      Part& part = parts[i];
      if (measuring && !part.first) part.first = now;
      part.last = now;
      if (measuring || std::any_of(parts.begin(), parts.end(), [](const Part& p) { return !p.last; })) return;
      measuring = true;
      over.expires_after(std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::duration<double>(options.seconds)));
      over.async_wait(end);
    };
    auto started = runtime::Child::start(event_loop, child, {received, [&, i](const runtime::ChildEnd&) {
                                                               parts[i].ended = true;
                                                               event_loop.stop();
                                                             }});
    if (!started) return started.error();
    parts[i].child = std::move(*started);
  }
  event_loop.run();
  std::vector<double> speeds;
  const bool one_has_ended = std::any_of(parts.begin(), parts.end(), [](const Part& part) { return part.ended; });
  end_gently(event_loop, parts);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    if (one_has_ended && !part.failed) continue;  // it was ended because another one failed
    if (part.failed || !part.first || part.last->first <= part.first->first) {
      std::string words;
      for (const std::string& line : part.child->last_lines()) words += "\n  " + line;
      return world_failed(fmt::format("bench mixed: part {} of {} did not compute alone; its last output:{}", i + 1, parts.size(), words));
    }
    speeds.push_back((part.last->second - part.first->second) / (part.last->first - part.first->first));
  }
  return speeds;
}

/// Samples per second counted in the second half of a run, after caches and the measured speeds have settled.
double steady_speed(const fs::path& trace) {
  std::ifstream file(trace, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto events = trace::read_events(std::as_bytes(std::span(bytes)));
  if (!events) return 0;
  std::vector<std::pair<double, double>> counted;  // time, samples so far
  double samples = 0;
  for (const trace::Event& event : *events) {
    const auto* contribution = event.as<trace::Counted>();
    if (contribution == nullptr) continue;
    samples += static_cast<double>(contribution->samples);
    counted.emplace_back(seconds(event.at), samples);
  }
  constexpr std::size_t fewest = 3;  // in a meaningful window
  if (counted.empty()) return 0;
  const auto& [to, after] = counted.back();
  const auto half =
      std::partition_point(counted.begin(), counted.end(), [middle = to / 2](const auto& count) { return count.first < middle; });
  if (counted.end() - half < static_cast<std::ptrdiff_t>(fewest)) return 0;
  const auto& [from, before] = *half;
  return to > from ? (after - before) / (to - from) : 0;
}

/// Checks or creates the output folder before anything is measured.
Outcome prepare_to_keep(const MixedOptions& options) {
  const std::set<std::string> names(options.strategies.begin(), options.strategies.end());
  if (names.size() < options.strategies.size())
    return bad_input(
        "bench mixed: --out: found a strategy twice in --strategies, expected each once, because its run is kept under its name");
  std::error_code failed;
  if (fs::exists(options.keep, failed) && !fs::is_empty(options.keep, failed))
    return bad_input(
        fmt::format("bench mixed: --out {}: found a folder that is not empty, expected an empty or missing one", options.keep));
  fs::create_directories(options.keep, failed);
  if (failed) return bad_input(fmt::format("bench mixed: --out {}: {}, expected a writable place", options.keep, failed.message()));
  return Done{};
}

Result<json::object> measure_together(const std::string& text, const std::string& strategy, const MixedOptions& options,
                                      const fs::path& folder) {
  const auto file = write_job(folder, "job.toml", text);
  if (!file) return file.error();
  const auto resolved = config::resolve_job(file->string(), options.overrides, strategy, std::nullopt);
  if (!resolved) return resolved.error();
  const auto job = config::parse_job(*resolved, file->string());
  if (!job) return job.error();
  const fs::path run = options.keep.empty() ? folder / "run" : fs::path(options.keep) / strategy;
  if (const Outcome written = engine::write_run_job(run, *resolved); !written) return written.error();
  runtime::LauncherOptions how;
  how.cluster = job->cluster;
  how.pipeline = config::is_pipeline(job->strategy);
  how.folder = run;
  how.checkpoint_every = 1'000'000'000;  // no checkpoint during a measurement
  runtime::Launcher launch(std::move(how));
  const auto launched = launch.run();
  if (!launched) return launched.error();
  if (launched->chief_code != runtime::ExitCode::done) return world_failed(fmt::format("bench mixed: training under {} failed", strategy));
  std::ifstream result(run / "result.json");
  json::object all = json::parse(std::string((std::istreambuf_iterator<char>(result)), std::istreambuf_iterator<char>())).as_object();
  const double speed = steady_speed(run / "trace.bin");
  std::error_code ignored;
  if (options.keep.empty()) fs::remove_all(run, ignored);
  json::object figures{{"strategy", strategy}, {"samples_per_second", speed}};
  for (const char* key : {"exposed_comm_share", "wait_share", "overlap_ratio", "finish_spread", "updates", "bytes_pushed", "bytes_pulled"})
    if (const auto* value = all.if_contains(key)) figures[key] = *value;
  return figures;
}

}  // namespace

Result<json::object> bench_mixed(const MixedOptions& asked) {
  MixedOptions options = asked;
  if (learn::gpus() == 0) options.emulated = true;
  if (options.emulated && !options.cpus.empty())
    return bad_input("bench mixed: --cpus: found CPU workers with emulated devices, expected a GPU");
  if (!options.keep.empty())
    if (const Outcome kept = prepare_to_keep(options); !kept) return kept.error();
  const auto folder = runtime::TemporaryFolder::make("motley-bench", "the runs of bench mixed");
  if (!folder) return folder.error();
  std::unique_ptr<runtime::GpuShares> gpu;
  if (!options.emulated) {
    auto started = runtime::GpuShares::start();
    if (!started) return started.error();
    gpu = std::move(*started);
    for (const auto& [key, value] : gpu->environment(0)) setenv(key.c_str(), value.c_str(), 1);  // inherited by the launched processes
  }

  std::vector<double> speeds(options.partitions.begin(), options.partitions.end());
  if (!options.emulated) {
    const std::vector<double> unknown(options.partitions.size() + options.cpus.size(), first_samples_per_second);
    const auto asked_for = write_job(folder->path(), "asked.toml", job_text(options, unknown));
    if (!asked_for) return asked_for.error();
    const auto resolved = config::resolve_job(asked_for->string(), options.overrides, std::nullopt, std::nullopt);
    if (!resolved) return resolved.error();
    const auto job = write_job(folder->path(), "alone.toml", *resolved);
    if (!job) return job.error();
    auto measured = measure_alone(options, *job, gpu.get());
    if (!measured) return measured.error();
    speeds = std::move(*measured);
  }
  const double sum = std::accumulate(speeds.begin(), speeds.end(), 0.0);

  json::array rows;
  for (const std::string& strategy : options.strategies) {
    const auto figures = measure_together(job_text(options, speeds), strategy, options, folder->path());
    if (!figures) return figures.error();
    json::object row = *figures;
    row["ratio"] = row.at("samples_per_second").to_number<double>() / sum;
    fmt::print(stderr, "{:<24} {:>10.0f} samples/s  {:.3f} of the sum of the parts\n", strategy,
               row.at("samples_per_second").to_number<double>(), row.at("ratio").to_number<double>());
    rows.push_back(std::move(row));
  }
  return json::object{{"partitions", json::array(options.partitions.begin(), options.partitions.end())},
                      {"cpus", json::array(options.cpus.begin(), options.cpus.end())},
                      {"emulated", options.emulated},
                      {"model", options.model},
                      {"precision", options.precision},
                      {"global_batch", options.global_batch},
                      {"alone", json::array(speeds.begin(), speeds.end())},
                      {"sum_of_parts", sum},
                      {"strategies", std::move(rows)}};
}

namespace {
volatile std::sig_atomic_t told_to_end = 0;
}

Outcome compute_alone(const std::string& job_file, const std::string& name, std::uint32_t batch) {
  const auto text = config::resolve_job(job_file, {}, std::nullopt, std::nullopt);
  if (!text) return text.error();
  auto setup = engine::prepare_worker(*text, name, std::nullopt);
  if (!setup) return setup.error();
  GradientSource& source = *setup->step_executor.source;
  std::vector<float> values(setup->step_executor.layout.values);
  source.initialize(0, values);
  std::vector<float> gradient(values.size());
  std::vector<std::uint32_t> samples(batch);
  std::uint64_t at = 0;
  NoStreaming still;
  constexpr double between = 0.25;
  double next = 0;
  double done = 0;
  // A device with memory of its own computes its steps there without transfers.
  LocalSgd* steps = source.local_sgd();
  if (steps != nullptr) {
    steps->begin(values);
    steps->begin_round();
  }
  std::signal(SIGTERM, [](int) { told_to_end = 1; });
  for (const runtime::Stopwatch watch; told_to_end == 0;) {
    for (std::uint32_t& sample : samples) sample = static_cast<std::uint32_t>(at++ % setup->step_executor.epoch_samples);
    if (steps != nullptr)
      steps->step(samples, {0.01, 0.9, 0});
    else
      source.gradient(values, samples, gradient, still);
    done += batch;
    if (watch.seconds() < next) continue;
    next = watch.seconds() + between;
    fmt::print("{:.6f} {:.0f}\n", watch.seconds(), done);
    std::fflush(stdout);
  }
  return Done{};
}

}  // namespace motley::bench
