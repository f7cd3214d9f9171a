// motley plan JOB: shows how the model would be cut across the nodes, the predicted time of each stage, and rejected alternatives.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/job_arguments.h"
#include "engine/pipeline_planning.h"
#include "report/json_text.h"

namespace motley::cli {
namespace {

namespace json = boost::json;

struct Bottleneck {
  bool link = false;  // the link from that stage to the next
  std::size_t stage = 0;
};

Bottleneck bottleneck_of(const pipeline::Cost& cost) {
  Bottleneck worst;
  double time = 0;
  for (std::size_t s = 0; s < cost.stage_s.size(); ++s) {
    if (cost.stage_s[s] > time) worst = {false, s}, time = cost.stage_s[s];
    if (s < cost.link_s.size() && cost.link_s[s] > time) worst = {true, s}, time = cost.link_s[s];
  }
  return worst;
}

std::string blocks_of(const pipeline::Problem& problem, const pipeline::Stage& stage) {
  const std::string& first = problem.blocks[stage.first].name;
  const std::string& last = problem.blocks[stage.last - 1].name;
  return stage.last - stage.first == 1 ? first : fmt::format("{} .. {} ({})", first, last, stage.last - stage.first);
}

std::string plan_text(const config::Job& job, const engine::PipelinePlan& made) {
  const pipeline::Cost cost = pipeline::cost_of(made.problem, made.cut);
  const Bottleneck worst = bottleneck_of(cost);
  std::string text = fmt::format("{}: {} blocks in {} stages; {} micro-batches of {:g} samples\n\n", job.name, made.problem.blocks.size(),
                                 made.cut.size(), made.micro_batches, made.micro_batch);
  text +=
      fmt::format("  {:>5}  {:<16}  {:<36}  {:>10}  {:>10}  {:>10}\n", "stage", "node", "blocks", "compute ms", "to next ms", "memory MB");
  for (std::size_t s = 0; s < made.cut.size(); ++s)
    text += fmt::format("  {:>5}  {:<16}  {:<36}  {:>10.2f}  {:>10}  {:>10.1f}{}\n", s + 1, made.problem.devices[made.cut[s].device].name,
                        blocks_of(made.problem, made.cut[s]), 1e3 * cost.stage_s[s],
                        s < cost.link_s.size() ? fmt::format("{:.2f}", 1e3 * cost.link_s[s]) : "", cost.bytes[s] / 1e6,
                        worst.stage == s ? (worst.link ? "  <- bottleneck: its link" : "  <- bottleneck") : "");
  text += fmt::format("\na micro-batch every {:.2f} ms, a global batch every {:.1f} ms: {:.0f} samples/s\n", 1e3 * cost.slot_s,
                      1e3 * cost.slot_s * made.micro_batches, made.micro_batch / cost.slot_s);
  for (const auto& [what, slot_s, why_not] : made.rejected) {
    if (slot_s == 0)
      text += fmt::format("rejected: {}: {}\n", what, why_not);
    else
      text += fmt::format("rejected: {}: {:.2f} ms, {:.2f}x as long{}\n", what, 1e3 * slot_s, slot_s / cost.slot_s,
                          why_not.empty() ? "" : "; " + why_not);
  }
  return text;
}

json::object plan_json(const config::Job& job, const engine::PipelinePlan& made) {
  const pipeline::Cost cost = pipeline::cost_of(made.problem, made.cut);
  const Bottleneck worst = bottleneck_of(cost);
  json::array stages;
  for (std::size_t s = 0; s < made.cut.size(); ++s) {
    json::object stage{{"node", made.problem.devices[made.cut[s].device].name},
                       {"first_block", made.cut[s].first},
                       {"last_block", made.cut[s].last - 1},
                       {"stage_s", cost.stage_s[s]},
                       {"memory_bytes", cost.bytes[s]}};
    if (s < cost.link_s.size()) stage["link_s"] = cost.link_s[s];
    stages.push_back(std::move(stage));
  }
  json::array rejected;
  for (const auto& [what, slot_s, why_not] : made.rejected)
    rejected.push_back({{"what", what}, {"slot_s", slot_s > 0 ? json::value(slot_s) : json::value(nullptr)}, {"why_not", why_not}});
  return {{"job", job.name},
          {"blocks", made.problem.blocks.size()},
          {"micro_batches", made.micro_batches},
          {"micro_batch", made.micro_batch},
          {"stages", std::move(stages)},
          {"slot_s", cost.slot_s},
          {"iteration_s", cost.slot_s * made.micro_batches},
          {"samples_per_second", made.micro_batch / cost.slot_s},
          {"bottleneck", {{"stage", worst.stage}, {"link", worst.link}}},
          {"lower_bound_s", pipeline::lower_bound_s(made.problem)},
          {"rejected", std::move(rejected)}};
}

int run(const JobArguments& arguments) {
  const auto job = arguments.read();
  if (!job) return fail(job.error());
  const auto material = engine::load_material(*job);
  if (!material) return fail(material.error());
  const auto made = engine::plan_pipeline(*job, *material);
  if (!made) return fail(made.error());
  if (arguments.json)
    fmt::print("{}\n", report::json_text(plan_json(*job, *made)));
  else
    fmt::print("{}", plan_text(*job, *made));
  return ExitCode::done;
}

}  // namespace

void add_plan(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<JobArguments>();
  CLI::App* command =
      app.add_subcommand("plan", "show a cut of the model across the nodes: stages, predicted times, memory, rejected alternatives");
  arguments->add_to(*command, false);
  command->callback([arguments, &exit_code] { exit_code = run(*arguments); });
}

}  // namespace motley::cli
