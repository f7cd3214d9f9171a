#include "cli/real_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <fstream>
#include <iterator>

#include "cli/commands.h"
#include "config/pipeline_strategy.h"
#include "engine/results.h"
#include "engine/run_folder.h"
#include "runtime/launcher.h"

namespace motley::cli {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

Result<json::object> train_once(const JobArguments& arguments, const std::string& strategy, std::uint64_t seed, const fs::path& folder) {
  const auto text = config::resolve_job(arguments.file, arguments.overrides, strategy, seed);
  if (!text) return text.error();
  const auto job = config::parse_job(*text, arguments.file);
  if (!job) return job.error();
  if (const Outcome written = engine::write_run_job(folder, *text); !written) return written.error();
  runtime::LauncherOptions options;
  options.cluster = job->cluster;
  options.pipeline = config::is_pipeline(job->strategy);
  options.folder = folder;
  runtime::Launcher launch(std::move(options));
  const auto launched = launch.run();
  if (!launched) return launched.error();
  if (launched->chief_code != ExitCode::done)
    return world_failed(fmt::format("{}, seed {}: real training failed, see {}", strategy, seed, folder.string()));
  std::ifstream file(folder / "result.json");
  const std::string result((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return json::parse(result).as_object();
}

std::optional<double> mean_of_all(const std::vector<std::optional<double>>& values) {
  double sum = 0;
  for (const auto& value : values) {
    if (!value) return std::nullopt;
    sum += *value;
  }
  return sum / static_cast<double>(values.size());
}

std::string seconds_text(const std::optional<double>& value) { return value ? fmt::format("{:.1f} s", *value) : "-"; }
json::value number_or_null(const std::optional<double>& value) { return value ? json::value(*value) : json::value(nullptr); }

}  // namespace

Result<std::vector<RealRow>> train_for_real(const JobArguments& job, const std::vector<std::string>& strategies,
                                            const std::vector<std::uint64_t>& seeds, const std::vector<engine::RunResult>& simulated,
                                            const std::optional<double>& target, const fs::path& folder) {
  std::vector<RealRow> rows;
  for (std::size_t s = 0; s < strategies.size(); ++s) {
    RealRow row;
    row.strategy = strategies[s];
    std::vector<std::optional<double>> prefetched;
    std::vector<std::optional<double>> real;
    for (std::size_t k = 0; k < seeds.size(); ++k) {
      const engine::RunResult& virtual_run = simulated[s * seeds.size() + k];
      std::string name = fmt::format("{}-{}", strategies[s], seeds[k]);
      std::replace(name.begin(), name.end(), '/', '_');
      const auto result = train_once(job, strategies[s], seeds[k], folder / "real" / name);
      if (!result) return result.error();
      const double n = static_cast<double>(seeds.size());
      row.simulated_samples_per_second += engine::figures(virtual_run).samples_per_second / n;
      row.real_samples_per_second += result->at("samples_per_second").to_number<double>() / n;
      if (const auto& accuracy = result->at("final_accuracy"); accuracy.is_number())
        row.real_final_accuracy += accuracy.to_number<double>() / n;
      prefetched.push_back(target ? trace::time_to_target(virtual_run.summary.curve(), *target) : std::nullopt);
      const auto& reached = result->at("time_to_target_s");
      real.push_back(reached.is_number() ? std::optional(reached.to_number<double>()) : std::nullopt);
    }
    row.simulated_time_to_target_s = mean_of_all(prefetched);
    row.real_time_to_target_s = mean_of_all(real);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string real_text(const std::vector<RealRow>& rows) {
  std::string text = fmt::format("{:<24} {:>14} {:>14} {:>8} {:>14} {:>14} {:>10}\n", "", "simulated", "real", "real /", "time to target",
                                 "time to target", "real final");
  text += fmt::format("{:<24} {:>14} {:>14} {:>8} {:>14} {:>14} {:>10}\n", "strategy", "samples/s", "samples/s", "simul.", "simulated",
                      "real", "accuracy");
  for (const RealRow& row : rows)
    text += fmt::format("{:<24} {:>14.0f} {:>14.0f} {:>8.3f} {:>14} {:>14} {:>8.2f} %\n", row.strategy, row.simulated_samples_per_second,
                        row.real_samples_per_second, row.ratio(), seconds_text(row.simulated_time_to_target_s),
                        seconds_text(row.real_time_to_target_s), row.real_final_accuracy * 100);
  return text;
}

json::array real_json(const std::vector<RealRow>& rows) {
  json::array list;
  for (const RealRow& row : rows)
    list.push_back(json::object{{"strategy", row.strategy},
                                {"simulated_samples_per_second", row.simulated_samples_per_second},
                                {"real_samples_per_second", row.real_samples_per_second},
                                {"ratio", row.ratio()},
                                {"simulated_time_to_target_s", number_or_null(row.simulated_time_to_target_s)},
                                {"real_time_to_target_s", number_or_null(row.real_time_to_target_s)},
                                {"real_final_accuracy", row.real_final_accuracy}});
  return list;
}

}  // namespace motley::cli
