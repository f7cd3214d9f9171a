#include "engine/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <cmath>
#include <limits>

#include "config/describe_cluster.h"
#include "engine/run_timelines.h"

namespace motley::engine {
namespace {

namespace json = boost::json;

json::value or_null(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? json::value(*value) : json::value(nullptr);
}

json::object staleness_json(const std::vector<std::uint64_t>& histogram) {
  double sum = 0;
  double count = 0;
  json::array bins;
  for (std::size_t k = 0; k < histogram.size(); ++k) {
    bins.emplace_back(histogram[k]);
    sum += static_cast<double>(k) * static_cast<double>(histogram[k]);
    count += static_cast<double>(histogram[k]);
  }
  return {{"mean", count > 0 ? sum / count : 0.0}, {"max", histogram.empty() ? 0 : histogram.size() - 1}, {"histogram", bins}};
}

json::array workers_json(const config::Job& job, const trace::Summary& summary) {
  json::array rows;
  for (const trace::WorkerSummary& w : summary.workers())
    rows.push_back(json::object{{"node", name_of_node(job, w.node)},
                                {"steps", w.steps},
                                {"samples", w.samples},
                                {"held", w.held},
                                {"mean_batch", w.steps > 0 ? static_cast<double>(w.samples) / static_cast<double>(w.steps) : 0.0},
                                {"compute_s", w.time.compute_s},
                                {"send_s", w.time.send_s},
                                {"receive_s", w.time.receive_s},
                                {"wait_s", w.time.wait_s}});
  return rows;
}

double best_accuracy(const std::vector<trace::Point>& curve) {
  double best = 0;
  for (const trace::Point& point : curve) best = std::max(best, point.accuracy);
  return best;
}

report::Phase phase(trace::Phase phase) {
  switch (phase) {
    case trace::Phase::compute: return report::Phase::compute;
    case trace::Phase::send: return report::Phase::send;
    case trace::Phase::wait: return report::Phase::wait;
    case trace::Phase::receive: return report::Phase::receive;
  }
  return report::Phase::wait;
}

std::vector<report::Lane> lanes(const config::Job& job, const RunResult& run) {
  std::vector<report::Lane> result;
  for (const trace::Timeline::Lane& lane : run.timeline) {
    report::Lane drawn{name_of_node(job, lane.node), {}};
    for (const trace::Stretch& s : lane.stretches) drawn.spans.push_back({seconds(s.from), seconds(s.to), phase(s.phase)});
    result.push_back(std::move(drawn));
  }
  return result;
}

std::vector<report::Point> points(const std::vector<trace::Point>& curve) {
  std::vector<report::Point> result;
  for (const trace::Point& p : curve) result.push_back({p.time_s, static_cast<double>(p.samples), p.accuracy, p.loss});
  return result;
}

/// Figures of one run, or means over several.
template <class Figures>
void add_pipeline(const Figures& figures, json::object& to) {
  to["steady_samples_per_second"] = figures.steady_samples_per_second;
  to["ratio_to_ideal"] = figures.ratio_to_ideal;
  to["utilization"] = figures.utilization;
  to["busiest_stage"] = figures.busiest;
  to["bubble_share"] = figures.bubble_share;
  to["peak_stash_bytes"] = figures.peak_stash_bytes;
  to["planned_stash_bytes"] = figures.planned_stash_bytes;
  to["max_delay"] = figures.max_delay;
}

std::string pipeline_text(const config::Job& job, const RunResult& run) {
  const PipelineFigures& f = *run.pipeline;
  std::string text =
      fmt::format("  pipeline   {:.0f} samples/s where nothing fills or drains, {:.1f} % of what its slowest stage or link allows\n",
                  f.steady_samples_per_second, 100 * f.ratio_to_ideal);
  text += fmt::format(
      "             busy {:.1f} %, its busiest stage {:.1f} %, at most {} updates late, {:.1f} MB kept ({:.1f} planned), cut anew {} "
      "times\n",
      100 * f.utilization, 100 * f.busiest, f.max_delay, f.peak_stash_bytes / 1e6, f.planned_stash_bytes / 1e6, f.repartitions);
  for (std::size_t s = 0; s < f.stages.size(); ++s)
    text += fmt::format(
        "  stage {:<4} {}: forward {:.1f} s, gradients of inputs {:.1f} s, of weights {:.1f} s, {} micro-batches held at most\n", s + 1,
        name_of_node(job, f.stages[s].node), f.stages[s].busy_s[0], f.stages[s].busy_s[1], f.stages[s].busy_s[2],
        f.stages[s].max_in_flight);
  return text + fmt::format("  trace      {}\n", run.trace_sha256);
}

std::optional<report::PipelineRow> pipeline_of(const config::Job& job, std::span<const RunResult> runs) {
  if (!runs.front().pipeline) return std::nullopt;
  report::PipelineRow row;
  const double n = static_cast<double>(runs.size());
  for (const RunResult& run : runs) {
    row.steady_samples_per_second += run.pipeline->steady_samples_per_second / n;
    row.ratio_to_ideal += run.pipeline->ratio_to_ideal / n;
    row.utilization += run.pipeline->utilization / n;
    row.busiest += run.pipeline->busiest / n;
    row.bubble_share += run.pipeline->bubble_share / n;
    row.peak_stash_bytes += run.pipeline->peak_stash_bytes / n;
    row.planned_stash_bytes += run.pipeline->planned_stash_bytes / n;
    row.max_delay = std::max(row.max_delay, static_cast<double>(run.pipeline->max_delay));
  }
  for (const trace::Pipeline::Stage& stage : runs.front().pipeline->stages) row.stages.push_back(name_of_node(job, stage.node));
  for (const trace::Pipeline::Box& box : runs.front().pipeline->boxes) row.boxes.push_back({box.stage, box.from_s, box.to_s, box.part});
  return row;
}

report::Row row_of(const config::Job& job, std::span<const RunResult> runs) {
  report::Row row;
  row.strategy = runs.front().label;
  const double n = static_cast<double>(runs.size());
  std::vector<std::vector<trace::Point>> curves;
  double squares = 0;
  for (const RunResult& run : runs) {
    const Figures f = figures(run);
    const auto& curve = run.summary.curve();
    const double final = curve.empty() || job.timing_only ? std::numeric_limits<double>::quiet_NaN() : curve.back().accuracy;
    curves.push_back(curve);
    row.curves.push_back(points(curve));
    row.time_to_target_per_seed.push_back(job.target_accuracy ? trace::time_to_target(curve, *job.target_accuracy) : std::nullopt);
    row.final_accuracy_mean += final / n;
    squares += final * final / n;
    row.samples_per_second += f.samples_per_second / n;
    row.bytes_total += static_cast<double>(run.outcome.bytes_pushed + run.outcome.bytes_pulled) / n;
    row.wait_share += f.wait_share / n;
    row.exposed_comm_share += f.exposed_comm_share / n;
    row.overlap_ratio += f.overlap_ratio / n;
  }
  const double variance = std::max(squares - row.final_accuracy_mean * row.final_accuracy_mean, 0.0);
  row.final_accuracy_std = n > 1 ? std::sqrt(variance * n / (n - 1)) : 0.0;
  const std::vector<trace::Point> mean = trace::mean_of(curves);
  row.mean_curve = points(trace::smoothed(mean));
  if (job.target_accuracy) row.time_to_target_s = trace::time_to_target(mean, *job.target_accuracy);
  row.sum_of_parts_samples_per_second = runs.front().sum_of_parts;
  row.timeline = lanes(job, runs.front());
  row.staleness = runs.front().summary.staleness();
  for (const trace::RunHistory::Worker& worker : runs.front().history.workers()) {
    report::WorkerHistory history{name_of_node(job, worker.node), {}};
    for (const trace::RunHistory::Share& s : worker.shares)
      history.shares.push_back({s.time_s, static_cast<double>(s.samples), s.push_bits, s.pull_bits, static_cast<double>(s.local_steps)});
    row.histories.push_back(std::move(history));
  }
  for (const trace::RunHistory::Finish& finish : runs.front().history.finishes()) row.finishes.push_back({finish.time_s, finish.spread_s});
  row.returned_samples = static_cast<double>(runs.front().summary.returned());
  row.samples = static_cast<double>(runs.front().outcome.samples);
  row.states = states_of(job, runs.front());
  row.groups = groups_of(job, runs.front());
  row.pipeline = pipeline_of(job, runs);
  return row;
}

void fill_speedups(report::Comparison& table) {
  const auto time_of = [&](std::string_view name) -> std::optional<double> {
    for (const report::Row& row : table.rows)
      if (row.strategy == name) return row.time_to_target_s;
    return std::nullopt;
  };
  const auto bsp = time_of("bsp");
  const auto lb_bsp = time_of("lb-bsp");
  for (report::Row& row : table.rows) {
    if (row.time_to_target_s && bsp) row.speedup_vs_bsp = *bsp / *row.time_to_target_s;
    if (row.time_to_target_s && lb_bsp) row.speedup_vs_lb_bsp = *lb_bsp / *row.time_to_target_s;
  }
}

}  // namespace

std::string_view ended_sentence(protocol::EndReason why) {
  switch (why) {
    case protocol::EndReason::every_sample_counted: return "every sample counted";
    case protocol::EndReason::time_is_up: return "time is up";
    case protocol::EndReason::diverged:
      return "training diverged: gradients, the model or its loss are not finite; lower the learning rate ([optimizer] lr), or let it rise "
             "for longer ([optimizer] warmup)";
    case protocol::EndReason::nobody_left: return "no worker was left";
    case protocol::EndReason::interrupted: return "interrupted";
  }
  return "";
}

config::Job with_unlisted_nodes(const config::Job& job, const std::vector<std::string>& nodes) {
  config::Job seen = job;
  for (std::size_t n = seen.cluster.nodes.size(); n < nodes.size(); ++n) {
    cluster::Node unlisted;
    unlisted.name = nodes[n];
    unlisted.device = cluster::DeviceKind::cpu;
    seen.cluster.nodes.push_back(std::move(unlisted));
  }
  return seen;
}

std::string name_of_node(const config::Job& job, std::uint64_t node) {
  return node < job.cluster.nodes.size() ? job.cluster.nodes[node].name : fmt::format("node {}", node);
}

bool failed(protocol::EndReason why) { return why == protocol::EndReason::diverged || why == protocol::EndReason::nobody_left; }

Figures figures(const RunResult& run) {
  Figures f;
  const trace::TimeShares time = run.summary.time();
  const double exposed = time.send_s + time.receive_s;
  if (time.total() > 0) {
    f.wait_share = time.wait_s / time.total();
    f.exposed_comm_share = exposed / time.total();
    f.overlap_ratio = run.summary.overlap_ratio();
  }
  if (seconds(run.outcome.ended) > 0) f.samples_per_second = static_cast<double>(run.outcome.samples) / seconds(run.outcome.ended);
  return f;
}

json::object run_json(const config::Job& job, const RunResult& run) {
  const Figures f = figures(run);
  const auto& curve = run.summary.curve();
  const bool learned = !curve.empty() && !job.timing_only;
  const auto reached = job.target_accuracy && learned ? trace::time_to_target(curve, *job.target_accuracy) : std::nullopt;
  json::object made{{"strategy", run.label},
                    {"seed", run.seed},
                    {"workers", job.cluster.nodes.size()},
                    {"target_accuracy", or_null(job.target_accuracy)},
                    {"time_to_target_s", or_null(reached)},
                    {"seconds", seconds(run.outcome.ended)},
                    {"epochs", run.outcome.closed_epochs},
                    {"samples", run.outcome.samples},
                    {"updates", run.outcome.updates},
                    {"final_accuracy", learned ? json::value(curve.back().accuracy) : json::value(nullptr)},
                    {"best_accuracy", learned ? json::value(best_accuracy(curve)) : json::value(nullptr)},
                    {"final_loss", learned ? json::value(curve.back().loss) : json::value(nullptr)},
                    {"samples_per_second", f.samples_per_second},
                    {"sum_of_parts_samples_per_second", run.sum_of_parts},
                    {"wait_share", f.wait_share},
                    {"exposed_comm_share", f.exposed_comm_share},
                    {"overlap_ratio", f.overlap_ratio},
                    {"bytes_pushed", run.outcome.bytes_pushed},
                    {"bytes_pulled", run.outcome.bytes_pulled},
                    {"staleness", staleness_json(run.summary.staleness())},
                    {"finish_spread", run.summary.finish_spread()},
                    {"returned_samples", run.summary.returned()},
                    {"per_worker", workers_json(job, run.summary)},
                    {"ended", ended_sentence(run.outcome.why)},
                    {"trace_sha256", run.trace_sha256}};
  if (run.pipeline) {
    add_pipeline(*run.pipeline, made);
    made["recuts"] = run.pipeline->repartitions;
  }
  return made;
}

std::string run_text(const config::Job& job, const RunResult& run) {
  const Figures f = figures(run);
  std::string text = fmt::format("{} on {}, seed {}: {} after {:.1f} s, {} updates, {} samples\n", run.label, job.name, run.seed,
                                 ended_sentence(run.outcome.why), seconds(run.outcome.ended), run.outcome.updates, run.outcome.samples);
  const auto& curve = run.summary.curve();
  if (!curve.empty() && !job.timing_only) {
    text += fmt::format("  accuracy   {:.2f} % at the end, {:.2f} % at best, loss {:.4f}\n", curve.back().accuracy * 100,
                        best_accuracy(curve) * 100, curve.back().loss);
    if (job.target_accuracy) {
      const auto reached = trace::time_to_target(curve, *job.target_accuracy);
      text += reached ? fmt::format("  target     {:.1f} % reached after {:.1f} s\n", *job.target_accuracy * 100, *reached)
                      : fmt::format("  target     {:.1f} % not reached\n", *job.target_accuracy * 100);
    }
  }
  text += fmt::format("  speed      {:.0f} samples/s, {:.0f} % of the sum of the parts ({:.0f})\n", f.samples_per_second,
                      100 * f.samples_per_second / run.sum_of_parts, run.sum_of_parts);
  if (run.pipeline) return text + pipeline_text(job, run);
  text += fmt::format("  time       {:.1f} % waiting, {:.1f} % exposed communication\n", f.wait_share * 100, f.exposed_comm_share * 100);
  for (const trace::WorkerSummary& w : run.summary.workers())
    text +=
        fmt::format("  {:<10} {} steps, {:.1f} samples each, computing {:.1f} s, waiting {:.1f} s\n", name_of_node(job, w.node), w.steps,
                    w.steps > 0 ? static_cast<double>(w.samples) / static_cast<double>(w.steps) : 0.0, w.time.compute_s, w.time.wait_s);
  return text + fmt::format("  trace      {}\n", run.trace_sha256);
}

report::Comparison comparison(const config::Job& job, const std::vector<RunResult>& runs, const std::vector<std::uint64_t>& seeds,
                              std::string command) {
  report::Comparison table;
  table.job = job.name;
  table.command = std::move(command);
  table.target_accuracy = job.target_accuracy;
  table.seeds = seeds;
  table.workers = config::describe_workers(job.cluster);
  table.network = config::describe_network(job.cluster);
  table.faults = config::describe_faults(job.cluster);
  for (std::size_t first = 0; first < runs.size(); first += seeds.size())
    table.rows.push_back(row_of(job, std::span(runs).subspan(first, seeds.size())));
  fill_speedups(table);
  return table;
}

json::object comparison_json(const report::Comparison& table) {
  json::array rows;
  for (const report::Row& row : table.rows) {
    json::array per_seed;
    for (const auto& time : row.time_to_target_per_seed) per_seed.push_back(or_null(time));
    rows.push_back(json::object{{"strategy", row.strategy},
                                {"time_to_target_s", or_null(row.time_to_target_s)},
                                {"time_to_target_per_seed", per_seed},
                                {"final_accuracy_mean", or_null(row.final_accuracy_mean)},
                                {"final_accuracy_std", or_null(row.final_accuracy_std)},
                                {"samples_per_second", row.samples_per_second},
                                {"sum_of_parts_samples_per_second", row.sum_of_parts_samples_per_second},
                                {"bytes_total", row.bytes_total},
                                {"wait_share", row.wait_share},
                                {"exposed_comm_share", row.exposed_comm_share},
                                {"overlap_ratio", row.overlap_ratio},
                                {"speedup_vs_bsp", or_null(row.speedup_vs_bsp)},
                                {"speedup_vs_lb_bsp", or_null(row.speedup_vs_lb_bsp)}});
    if (row.pipeline) add_pipeline(*row.pipeline, rows.back().as_object());
  }
  json::array seeds;
  for (const std::uint64_t seed : table.seeds) seeds.emplace_back(seed);
  return {{"job", table.job}, {"target_accuracy", or_null(table.target_accuracy)}, {"seeds", seeds}, {"rows", rows}};
}

}  // namespace motley::engine
