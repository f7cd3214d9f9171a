#include "engine/pipeline_training.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/describe.hpp>
#include <boost/mp11.hpp>
#include <cmath>

#include "base/batching.h"
#include "base/check.h"
#include "config/toml_value.h"
#include "config/toml_write.h"
#include "runtime/sha256.h"

namespace motley::engine {
namespace {

pipeline::Schedule schedule_of(const config::Job& job, const policy::StrategySpec& strategy, std::uint32_t micro_batches,
                               const pipeline::Problem& problem, const pipeline::Cut& cut) {
  double jitter = 0;
  for (const cluster::Node& node : job.cluster.nodes) jitter = std::max(jitter, node.jitter);
  pipeline::Schedule schedule = pipeline::make_schedule({strategy.kind, micro_batches, jitter}, problem, cut);
  if (strategy.knobs.without == policy::Off::predict) schedule.predicts = false;
  if (strategy.knobs.without == policy::Off::clipping) schedule.clips = false;
  if (strategy.knobs.without == policy::Off::soften) schedule.softens = false;
  if (strategy.knobs.without == policy::Off::defer) schedule.defers_weight_gradients = false;
  if (strategy.knobs.without == policy::Off::replan) schedule.replan_every = 0;
  if (strategy.knobs.without == policy::Off::caps)
    for (std::uint32_t s = 0; s < cut.size(); ++s) schedule.max_in_flight[s] = static_cast<std::uint32_t>(cut.size()) - s;
  return schedule;
}

/// Refuses jobs with settings that pipelines do not support.
Outcome can_be_a_pipeline(const config::Job& job, const policy::StrategySpec& strategy, const std::string& label) {
  using cluster::FaultKind;
  for (const cluster::Fault& fault : job.cluster.faults)
    if (fault.kind == FaultKind::partition)
      return bad_input(fmt::format(
          "{}: cluster.fault: found a partition at {:g} s on node \"{}\", expected another kind with {}: a node that is cut off from a "
          "pipeline is lost (use kill, and then join)",
          job.file.string(), seconds(fault.at.time_since_epoch()), job.cluster.nodes[fault.node.value].name, label));
  if (job.max_seconds)
    return bad_input(fmt::format("{}: job.max_seconds: found {:g}, expected none with {}: a pipeline runs for job.max_epochs",
                                 job.file.string(), *job.max_seconds, label));
  const std::uint32_t micros = job.pipeline.micro_batches;
  if (micros > job.global_batch)
    return bad_input(
        fmt::format("{}: micro_batches: found {} with {}, expected at most {} (batch.global: a micro-batch has at least one sample)",
                    job.file.string(), micros, label, job.global_batch));
  if (strategy.kind == "pipedream" && strategy.knobs.micro_batches && job.global_batch % micros != 0)
    return bad_input(
        fmt::format("{}: micro_batches: found {} with {}, expected a number that divides batch.global, which is {}: each is an "
                    "update of its own",
                    job.file.string(), micros, label, job.global_batch));
  return Done{};
}

/// Makes a cut of the same kind for other devices.
std::function<std::optional<pipeline::Cut>(const pipeline::Problem&)> repartition_of(const config::Job& job, const PipelinePlan& plan) {
  const std::string kind = job.pipeline.cut;
  const pipeline::Cut by_hand = job.pipeline.boundaries.empty() ? pipeline::Cut{} : plan.cut;
  const std::size_t devices = plan.problem.devices.size();
  return [kind, by_hand, devices](const pipeline::Problem& problem) -> std::optional<pipeline::Cut> {
    if (!by_hand.empty() && problem.devices.size() == devices) return by_hand;
    if (kind != "uniform") return pipeline::find(problem).cut;
    pipeline::Cut cut = pipeline::uniform(problem);
    return pipeline::cost_of(problem, cut).full.empty() ? std::optional(std::move(cut)) : std::nullopt;
  };
}

}  // namespace

/// pipedream with micro-batches makes an update after each of them.
Batches batches_of(const config::Job& job, const Material& material, const policy::StrategySpec& strategy) {
  Batches made;
  made.samples =
      strategy.kind == "pipedream" && strategy.knobs.micro_batches ? job.global_batch / *strategy.knobs.micro_batches : job.global_batch;
  const double epoch = static_cast<double>(material.epoch_samples);
  made.total = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::llround(job.max_epochs * epoch)));
  made.count = Batching{.total = made.total, .samples = made.samples}.mini_batches();
  made.evaluate_every = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::llround(job.evaluate_every * epoch)) / made.samples);
  return made;
}

policy::LrSchedule rates_of(const config::Job& job, const Material& material, const policy::StrategySpec& strategy,
                            const Batches& batches) {
  policy::LrScheduleSpec rates = job.schedule;
  rates.lr = strategy.knobs.lr.value_or(rates.lr);
  return {rates, job.global_batch, material.epoch_samples, batches.total};
}

OptimizerSpec optimizer_of(const config::Job& job, const policy::StrategySpec& strategy) {
  OptimizerSpec optimizer = job.optimizer;
  optimizer.momentum = strategy.knobs.momentum.value_or(optimizer.momentum);
  return optimizer;
}

Result<std::vector<std::unique_ptr<learn::StageLearner>>> make_stage_learners(const config::Job& job, const Material& material,
                                                                              const pipeline::Cut& cut) {
  std::vector<std::uint32_t> first_blocks;
  for (const pipeline::Stage& stage : cut) first_blocks.push_back(stage.first);
  return learn::make_stages(job.model, material.data, first_blocks);
}

store::StagePlace place_in(const ModelShape& whole, const ModelShape& stage) {
  store::StagePlace place;
  place.parameters = stage.parameters;
  place.values = stage.values();
  for (const Tensor& tensor : stage.tensors) {
    const auto from = std::find_if(whole.tensors.begin(), whole.tensors.end(), [&](const Tensor& t) { return t.name == tensor.name; });
    check(from != whole.tensors.end(), "a stage's tensors are the model's");
    place.pieces.push_back({tensor.offset, from->offset, tensor.count});
  }
  return place;
}

std::vector<store::StagePlace> stage_places(const config::Job& job, const Material& material, const ModelShape& whole,
                                            const pipeline::Cut& cut) {
  const auto learners = make_stage_learners(job, material, cut);
  check(learners.ok(), "a model that can be made can be cut");
  std::vector<store::StagePlace> places;
  for (const auto& learner : *learners) places.push_back(place_in(whole, learner->shape()));
  return places;
}

std::string learning_sha256(const std::string& job_text) {
  auto document = config::parse_toml(job_text, "the job");
  check(document.ok(), "a resolved job can be read");
  std::erase_if(std::get<config::Table>(document->held).entries,
                [](const config::Entry& entry) { return entry.key == "pipeline" || entry.key == "cluster"; });
  return runtime::sha256_hex(config::write_toml(*document));
}

Result<PipelineTraining> make_pipeline_training(const config::Job& job, const Material& material, const policy::StrategySpec& strategy,
                                                const std::string& label) {
  config::Job as_asked = job;
  as_asked.pipeline.micro_batches = strategy.knobs.micro_batches.value_or(job.pipeline.micro_batches);
  as_asked.pipeline.cut = strategy.knobs.cut.value_or(job.pipeline.cut);
  if (const Outcome possible = can_be_a_pipeline(as_asked, strategy, label); !possible) return possible.error();
  // A mini-batch that is one micro-batch is sent undivided.
  if (strategy.kind == "naive-mp" || (strategy.kind == "pipedream" && !strategy.knobs.micro_batches)) as_asked.pipeline.micro_batches = 1;
  auto plan = plan_pipeline(as_asked, material);
  if (!plan) return plan.error();
  PipelineTraining made;
  made.plan = std::move(*plan);
  made.reschedule = [job, strategy, micro_batches = made.plan.micro_batches](const pipeline::Problem& problem, const pipeline::Cut& cut) {
    return schedule_of(job, strategy, micro_batches, problem, cut);
  };
  made.repartition = repartition_of(as_asked, made.plan);
  const pipeline::Schedule schedule = made.reschedule(made.plan.problem, made.plan.cut);
  const std::vector<double> memory = pipeline::memory_of(schedule, made.plan.problem, made.plan.cut);
  made.planned_stash_bytes = pipeline::stash_of(schedule, made.plan.problem, made.plan.cut);
  for (std::uint32_t s = 0; s < memory.size(); ++s)
    if (const double has = made.plan.problem.devices[made.plan.cut[s].device].memory_bytes; has > 0 && memory[s] > has)
      return does_not_fit(job, made.plan.problem, made.plan.cut[s], s, memory[s]);
  made.batches = batches_of(job, material, strategy);
  made.rates.emplace(rates_of(job, material, strategy, made.batches));
  made.optimizer = optimizer_of(job, strategy);
  for (const cluster::Node& node : job.cluster.nodes) made.sum_of_parts += node.samples_per_second;
  return made;
}

trace::Pipeline PipelineTraining::lens() const {
  const std::uint64_t middle = batches.count / 2;
  return {middle * plan.micro_batches, (middle + 3) * plan.micro_batches};
}

PipelineFigures PipelineTraining::figures(const trace::Pipeline& seen, const std::vector<double>& peak_stash_bytes) const {
  PipelineFigures figures;
  const double ideal = plan.micro_batch / pipeline::cost_of(plan.problem, plan.cut).slot_s;
  figures.steady_samples_per_second = seen.updates_per_second() * static_cast<double>(batches.samples);
  figures.ratio_to_ideal = figures.steady_samples_per_second / ideal;
  figures.utilization = seen.utilization();
  figures.busiest = seen.busiest();
  figures.bubble_share = 1 - figures.utilization;
  for (const double bytes : peak_stash_bytes) figures.peak_stash_bytes += bytes;
  for (const double bytes : planned_stash_bytes) figures.planned_stash_bytes += bytes;
  for (const trace::Pipeline::Stage& stage : seen.stages()) figures.max_delay = std::max(figures.max_delay, stage.most_late);
  figures.stages = seen.stages();
  figures.boxes = seen.boxes();
  figures.repartitions = seen.repartitions();
  return figures;
}

protocol::TrainingOutcome PipelineTraining::outcome_of(std::uint64_t mini_batches, std::uint64_t epoch_samples) const {
  protocol::TrainingOutcome outcome;
  outcome.updates = mini_batches;
  outcome.samples = std::min(mini_batches * batches.samples, batches.total);
  outcome.closed_epochs = static_cast<std::uint32_t>(outcome.samples / epoch_samples);
  return outcome;
}

}  // namespace motley::engine
