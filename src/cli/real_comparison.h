// compare --real: trains each strategy and seed with real processes too, beside the simulator's prediction.
#pragma once
#include <boost/json/array.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/job_arguments.h"
#include "engine/run_result.h"

namespace motley::cli {

/// Means over the seeds.
struct RealRow {
  std::string strategy;
  double simulated_samples_per_second = 0;
  double real_samples_per_second = 0;
  std::optional<double> simulated_time_to_target_s;  // none: at least one seed did not reach it
  std::optional<double> real_time_to_target_s;
  double real_final_accuracy = 0;
  [[nodiscard]] double ratio() const { return real_samples_per_second / simulated_samples_per_second; }
};

/// Trains one run after the other, each in its own folder under `folder`. `simulated`: the simulated runs, by strategy, then by seed.
Result<std::vector<RealRow>> train_for_real(const JobArguments& job, const std::vector<std::string>& strategies,
                                            const std::vector<std::uint64_t>& seeds, const std::vector<engine::RunResult>& simulated,
                                            const std::optional<double>& target, const std::filesystem::path& folder);

[[nodiscard]] std::string real_text(const std::vector<RealRow>& rows);
[[nodiscard]] boost::json::array real_json(const std::vector<RealRow>& rows);

}  // namespace motley::cli
