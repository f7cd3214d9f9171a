// Prints finished runs for users and scripts: text, JSON, rows of a comparison.
#pragma once
#include <boost/json/object.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/job.h"
#include "engine/run_result.h"
#include "report/comparison.h"

namespace motley::engine {

/// Rates and shares of one run, derived from its summary.
struct Figures {
  double samples_per_second = 0;
  double wait_share = 0;
  double exposed_comm_share = 0;
  double overlap_ratio = 0;  // 1 - exposed/total communication
};
[[nodiscard]] Figures figures(const RunResult& run);

/// The reason as a sentence; and whether it is a failure of the cluster.
[[nodiscard]] std::string_view ended_sentence(protocol::EndReason why);
[[nodiscard]] bool failed(protocol::EndReason why);

/// The job with the workers that joined without being listed: `nodes` are the names of all, those of the job first.
[[nodiscard]] config::Job with_unlisted_nodes(const config::Job& job, const std::vector<std::string>& nodes);

/// The name of a node in a trace; "node 7" where the job has no such node, as in a damaged trace.
[[nodiscard]] std::string name_of_node(const config::Job& job, std::uint64_t node);

/// The object that `simulate --json` prints.
boost::json::object run_json(const config::Job& job, const RunResult& run);
/// A few lines for people.
std::string run_text(const config::Job& job, const RunResult& run);

/// One row per strategy, in the order of `runs` (first by strategy, then by seed; each strategy has `seeds` runs).
report::Comparison comparison(const config::Job& job, const std::vector<RunResult>& runs, const std::vector<std::uint64_t>& seeds,
                              std::string command);
/// The object that `compare --json` prints.
boost::json::object comparison_json(const report::Comparison& table);

}  // namespace motley::engine
