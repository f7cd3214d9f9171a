// One entry per column, in the order in which the table shows them. A new figure in the table is one entry here.
#include "report/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "report/headline.h"
#include "report/number.h"
#include "report/ranking.h"

namespace motley::report {
namespace {

/// "58.4–64.1", "58.4–64.1, 4/5" when a seed missed the target, nothing for a single seed that reached it.
std::string spread_text(const Row& row) {
  const SeedSpread spread = seed_spread(row);
  const std::string how_many = spread.reached < spread.seeds ? fmt::format("{}/{}", spread.reached, spread.seeds) : "";
  if (spread.reached == 0) return "";
  if (spread.seeds < 2) return how_many;
  const std::string range = fmt::format("{}–{}", show_seconds_bare(spread.least_s), show_seconds_bare(spread.most_s));
  return how_many.empty() ? range : range + ", " + how_many;
}

Cell time_to_target(const Row& row) {
  const auto time = reached(row.time_to_target_s);
  return {time ? show_seconds(*time) : "not reached", spread_text(row)};
}

Cell throughput(const Row& row) {
  const double whole = row.sum_of_parts_samples_per_second;
  return {show_fixed(row.samples_per_second, 0), whole > 0 ? show_percent(row.samples_per_second / whole, 0) : ""};
}

constexpr double least_worth_telling = 0.005;

/// A column that only pipelines fill.
template <class Show>
Column of_pipelines(std::string heading, std::string meaning, Show show) {
  return {std::move(heading), std::move(meaning), [show](const Row& row) {
            return row.pipeline ? Cell{show(*row.pipeline), ""} : Cell{std::string(no_number), ""};
          }};
}

std::vector<Column> pipeline_columns() {
  return {of_pipelines("steady", "Samples a second in the middle half of the run, where nothing fills or drains.",
                       [](const PipelineRow& row) { return show_fixed(row.steady_samples_per_second, 0); }),
          of_pipelines("of ideal", "That, as a share of what the slowest stage or link of its cut allows.",
                       [](const PipelineRow& row) { return show_percent(row.ratio_to_ideal, 1); }),
          of_pipelines("busy", "Share of the stages' time spent computing, in the middle half of the run.",
                       [](const PipelineRow& row) { return show_percent(row.utilization, 1); }),
          of_pipelines("stash", "The most that each stage kept, added up: activations, and parameters beside the newest.",
                       [](const PipelineRow& row) { return show_bytes(row.peak_stash_bytes); }),
          of_pipelines("delay", "The most updates that a forward lacked.",
                       [](const PipelineRow& row) { return show_fixed(row.max_delay, 0); })};
}

std::vector<Column> general_columns(const Comparison& comparison) {
  return {
      {comparison.target_accuracy ? "time to " + target_text(comparison) : "time to target",
       "When the mean curve over the seeds, smoothed over 3 evaluations, first reaches the target; beside it the soonest and the latest "
       "seed, and how "
       "many seeds got there when not all did.",
       [has_target = comparison.target_accuracy.has_value()](const Row& row) {
         return has_target ? time_to_target(row) : Cell{std::string(no_number), ""};
       }},
      {"vs bsp", "How many times sooner than bsp.",
       [](const Row& row) {
         return Cell{show_times(row.speedup_vs_bsp), ""};
       }},
      {"vs lb-bsp", "How many times sooner than load-balanced bsp.",
       [](const Row& row) {
         return Cell{show_times(row.speedup_vs_lb_bsp), ""};
       }},
      {"final accuracy", "At the end of the run: mean and standard deviation over the seeds.",
       [](const Row& row) {
         return Cell{show_percent(row.final_accuracy_mean, row.final_accuracy_std, 1), ""};
       }},
      {"samples/s", "Throughput of the cluster; beside it its share of the sum of what each device does alone.", throughput},
      {"wait", "Share of the workers' time spent waiting for others.",
       [](const Row& row) {
         return Cell{show_percent(row.wait_share), ""};
       }},
      {"comm",
       "Share of the workers' time spent on communication that no computation hides; beside it, where any is hidden, the share of all "
       "transfers that is.",
       [](const Row& row) {
         return Cell{show_percent(row.exposed_comm_share),
                     row.overlap_ratio >= least_worth_telling ? show_percent(row.overlap_ratio, 0) : ""};
       }},
      {"bytes", "Pushed and pulled over the whole run.",
       [](const Row& row) {
         return Cell{show_bytes(row.bytes_total), ""};
       }},
  };
}

}  // namespace

std::vector<Column> columns(const Comparison& comparison) {
  const bool pipelines =
      std::any_of(comparison.rows.begin(), comparison.rows.end(), [](const Row& row) { return row.pipeline.has_value(); });
  std::vector<Column> all = general_columns(comparison);
  if (!pipelines) return all;
  std::erase_if(
      all, [](const Column& column) { return column.heading == "wait" || column.heading == "comm" || column.heading.starts_with("vs "); });
  for (Column& column : pipeline_columns()) all.push_back(std::move(column));
  return all;
}

}  // namespace motley::report
