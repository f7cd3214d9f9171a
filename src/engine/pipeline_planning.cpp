#include "engine/pipeline_planning.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "config/toml_reader.h"
#include "engine/pipeline_training.h"
#include "runtime/stopwatch.h"

namespace motley::engine {
namespace {

/// Seconds of one sample on a device that computes one sample of the whole model per second.
struct Profiled {
  std::vector<pipeline::Block> blocks;
};

Result<Profiled> read_profile(const std::filesystem::path& file) {
  const auto document = config::load_toml(file);
  if (!document) return document.error();
  config::Complaints complaints;
  config::Reader root(*document, "", complaints);
  Profiled profile;
  const config::Bounds some = config::at_least(0).no_more_than(1e15);
  for (config::Reader& section : root.sections("block", config::required)) {
    pipeline::Block block;
    section.name("name", block.name, "what plans call it", config::required);
    section.number("forward_s", block.forward_s, some, "seconds of its forward, for one sample", config::required);
    section.number("input_s", block.input_s, some, "seconds of the gradient of its inputs", config::required);
    section.number("weight_s", block.weight_s, some, "seconds of the gradient of its weights", config::required);
    section.number("output_bytes", block.output_bytes, some, "that the next block reads", config::required);
    section.number("kept_bytes", block.kept_bytes, some, "that its backward needs", config::required);
    section.number("parameter_bytes", block.parameter_bytes, some, "of its parameters", config::required);
    section.finish();
    profile.blocks.push_back(std::move(block));
  }
  root.finish();
  if (!complaints.empty()) return complaints.error();
  double work = 0;
  for (const pipeline::Block& block : profile.blocks) work += block.work_s();
  if (work <= 0)
    return bad_input(fmt::format("{}: block: found blocks that take no time at all, expected some forward_s, input_s or weight_s above 0",
                                 file.string()));
  for (pipeline::Block& block : profile.blocks)  // a node's speed refers to the whole model
    for (double* part : {&block.forward_s, &block.input_s, &block.weight_s}) *part /= work;
  return profile;
}

/// Shares by each block's arithmetic, or equal shares: forward, gradient of inputs and gradient of weights take a third each.
Result<Profiled> count_profile(const config::Job& job, const Material& material, bool alike) {
  if (job.timing_only)
    return bad_input(
        fmt::format("{}: pipeline.profile: found none, expected a file of blocks, because model.kind is \"none\"", job.file.string()));
  auto learner = learn::make_learner(job.model, material.data);
  if (!learner) return learner.error();
  const std::vector<learn::BlockProfile> blocks = (*learner)->profile();
  const double all = std::accumulate(blocks.begin(), blocks.end(), 0.0, [](double sum, const auto& block) { return sum + block.work; });
  Profiled profile;
  for (const learn::BlockProfile& block : blocks) {
    const double third = (alike ? 1.0 / static_cast<double>(blocks.size()) : block.work / all) / 3;
    profile.blocks.push_back({block.name, third, third, third, static_cast<double>(block.output_bytes),
                              static_cast<double>(block.kept_bytes), static_cast<double>(block.parameters * sizeof(float))});
  }
  return profile;
}

/// Measures each part of each block on this machine, on one thread; the minimum of a few repetitions.
Result<Profiled> measure_profile(const config::Job& job, const Material& material, double samples) {
  constexpr int times = 5;
  auto profile = count_profile(job, material, false);
  if (!profile) return profile.error();
  auto whole = learn::make_learner(job.model, material.data);
  if (!whole) return whole.error();
  std::vector<std::uint32_t> first_blocks(profile->blocks.size());
  std::iota(first_blocks.begin(), first_blocks.end(), 0U);
  auto stages = learn::make_stages(job.model, material.data, first_blocks);
  if (!stages) return stages.error();
  store::StagedModel model;
  model.values.resize((*whole)->shape().values());
  (*whole)->initialize(job.seed, model.values);
  std::vector<std::uint32_t> batch(static_cast<std::size_t>(std::max(1.0, std::min(samples, static_cast<double>(material.epoch_samples)))));
  std::iota(batch.begin(), batch.end(), 0U);
  std::vector<store::StagePart> parts;
  for (const auto& stage : *stages) parts.push_back(model.part(place_in((*whole)->shape(), stage->shape())));
  learn::use_threads(1);
  const auto quickest = [](double& best, int round, const auto& what) {
    const runtime::Stopwatch watch;
    what();
    best = round == 0 ? watch.seconds() : std::min(best, watch.seconds());
  };
  for (int round = 0; round < times; ++round) {
    std::vector<Activation> passed(stages->size() + 1);
    for (std::size_t b = 0; b < stages->size(); ++b)
      quickest(profile->blocks[b].forward_s, round, [&] { (*stages)[b]->forward(0, parts[b].values, batch, passed[b], passed[b + 1]); });
    Activation gradient;
    for (std::size_t b = stages->size(); b-- > 0;) {
      Activation before;
      quickest(profile->blocks[b].input_s, round, [&] { (*stages)[b]->input_gradient(0, gradient, before); });
      std::vector<float> out(parts[b].values.size());
      quickest(profile->blocks[b].weight_s, round, [&] { (*stages)[b]->weight_gradient(0, 1, out); });
      gradient = std::move(before);
    }
  }
  double work = 0;
  for (const pipeline::Block& block : profile->blocks) work += block.work_s();
  for (pipeline::Block& block : profile->blocks)  // a node's speed refers to the whole model
    for (double* part : {&block.forward_s, &block.input_s, &block.weight_s}) *part /= work;
  return profile;
}

pipeline::DeviceLink between_nodes(const cluster::Spec& spec, const cluster::Node& from, const cluster::Node& to) {
  pipeline::DeviceLink link{std::min(from.link.up_bytes_per_second, to.link.down_bytes_per_second),
                            seconds(from.link.latency) + seconds(to.link.latency)};
  if (from.group == to.group) return link;
  if (from.group) {
    const cluster::Link& up = spec.groups[*from.group].uplink;
    link.bytes_per_second = std::min(link.bytes_per_second, up.up_bytes_per_second);
    link.latency_s += seconds(up.latency);
  }
  if (to.group) {
    const cluster::Link& down = spec.groups[*to.group].uplink;
    link.bytes_per_second = std::min(link.bytes_per_second, down.down_bytes_per_second);
    link.latency_s += seconds(down.latency);
  }
  return link;
}

Result<pipeline::Cut> manual(const config::Job& job, const pipeline::Problem& problem) {
  pipeline::Cut cut;
  std::uint32_t first = 0;
  for (const std::uint32_t boundary : job.pipeline.boundaries) {
    cut.push_back({first, boundary, static_cast<std::uint32_t>(cut.size())});
    first = boundary;
  }
  cut.push_back({first, static_cast<std::uint32_t>(problem.blocks.size()), static_cast<std::uint32_t>(cut.size())});
  if (!pipeline::is_valid_cut(problem, cut))
    return bad_input(
        fmt::format("{}: pipeline.boundaries: found {} stages up to block {}, expected at most {} (one for each node), and "
                    "boundaries below {} (the model's blocks)",
                    job.file.string(), cut.size(), first, problem.devices.size(), problem.blocks.size()));
  return cut;
}

void weigh(PipelinePlan& made, std::string what, const std::optional<pipeline::Cut>& cut) {
  if (!cut) {
    made.rejected.push_back({std::move(what), 0, "no such cut fits the memory"});
    return;
  }
  if (*cut == made.cut) return;
  const pipeline::Cost cost = pipeline::cost_of(made.problem, *cut);
  made.rejected.push_back({std::move(what), cost.slot_s, cost.full.empty() ? "" : fmt::format("{} stages do not fit", cost.full.size())});
}

}  // namespace

Error does_not_fit(const config::Job& job, const pipeline::Problem& problem, const pipeline::Stage& stage, std::uint32_t number,
                   double bytes) {
  return bad_input(fmt::format(
      "{}: cluster.node.memory: found {:.0f} bytes on node \"{}\", expected at least {:.0f} for stage {} (blocks {} to {}: {} to {}); "
      "take more or larger devices, more micro-batches, or a smaller model",
      job.file.string(), problem.devices[stage.device].memory_bytes, problem.devices[stage.device].name, bytes, number + 1, stage.first,
      stage.last - 1, problem.blocks[stage.first].name, problem.blocks[stage.last - 1].name));
}

namespace {

/// The profile must have as many blocks as the model.
Outcome same_blocks(const config::Job& job, const Material& material, std::size_t found) {
  if (job.timing_only) return Done{};
  const auto learner = learn::make_learner(job.model, material.data);
  if (!learner) return learner.error();
  const std::uint32_t expected = (*learner)->shape().blocks;
  if (found == expected) return Done{};
  return bad_input(
      fmt::format("{}: block: found {} blocks, expected {}, as many as the model \"{}\" has; write one [[block]] for each, in order",
                  job.pipeline.profile.string(), found, expected, job.model.kind));
}

}  // namespace

void add_devices(const cluster::Spec& cluster, pipeline::Problem& problem) {
  for (const cluster::Group& group : cluster.groups)
    problem.uplinks.push_back({group.uplink.up_bytes_per_second, group.uplink.down_bytes_per_second});
  for (const cluster::Node& node : cluster.nodes) {
    problem.devices.push_back(
        {node.name, node.samples_per_second, static_cast<double>(node.memory_bytes), seconds(node.overhead), node.group});
    std::vector<pipeline::DeviceLink>& row = problem.links.emplace_back();
    for (const cluster::Node& other : cluster.nodes) row.push_back(between_nodes(cluster, node, other));
  }
}

Result<pipeline::Problem> pipeline_problem(const config::Job& job, const Material& material, double samples) {
  const bool alike = job.pipeline.profile == "equal";
  const bool measured = job.pipeline.profile == "measured";
  const bool counted = job.pipeline.profile.empty();
  auto profile = measured           ? measure_profile(job, material, samples)
                 : alike || counted ? count_profile(job, material, alike)
                                    : read_profile(job.pipeline.profile);
  if (!profile) return profile.error();
  if (!alike && !counted && !measured)
    if (const Outcome same = same_blocks(job, material, profile->blocks.size()); !same) return same.error();
  pipeline::Problem problem;
  problem.most_stages = job.pipeline.stages;
  problem.blocks = std::move(profile->blocks);
  for (pipeline::Block& block : problem.blocks)
    for (double* part : {&block.forward_s, &block.input_s, &block.weight_s, &block.output_bytes, &block.kept_bytes}) *part *= samples;
  add_devices(job.cluster, problem);
  return problem;
}

namespace {

Result<PipelinePlan> plan_with(const config::Job& job, const Material& material, std::uint32_t micro_batches) {
  PipelinePlan made;
  made.micro_batches = micro_batches;
  made.micro_batch = static_cast<double>(job.global_batch) / made.micro_batches;
  auto problem = pipeline_problem(job, material, made.micro_batch);
  if (!problem) return problem.error();
  made.problem = std::move(*problem);

  if (!job.pipeline.boundaries.empty()) {
    auto cut = manual(job, made.problem);
    if (!cut) return cut.error();
    made.cut = std::move(*cut);
  } else if (job.pipeline.cut == "uniform") {
    made.cut = pipeline::uniform(made.problem);
  } else {
    const pipeline::Found found = pipeline::find(made.problem);
    if (!found.cut) return does_not_fit(job, made.problem, found.why.nearest[found.why.stage], found.why.stage, found.why.bytes);
    made.cut = *found.cut;
  }
  const pipeline::Cost cost = pipeline::cost_of(made.problem, made.cut);
  if (!cost.full.empty())
    return does_not_fit(job, made.problem, made.cut[cost.full.front()], cost.full.front(), cost.bytes[cost.full.front()]);

  std::vector<std::uint32_t> in_order(made.problem.stages());
  std::iota(in_order.begin(), in_order.end(), 0U);
  weigh(made, "equal numbers of blocks, nodes in their order", pipeline::uniform(made.problem));
  weigh(made, "the best cut with nodes in their order", pipeline::best_for_order(made.problem, in_order));
  const auto fastest =
      static_cast<std::uint32_t>(std::max_element(made.problem.devices.begin(), made.problem.devices.end(),
                                                  [](const pipeline::Device& a, const pipeline::Device& b) { return a.speed < b.speed; }) -
                                 made.problem.devices.begin());
  weigh(made, "everything on the fastest node", pipeline::Cut{{0, static_cast<std::uint32_t>(made.problem.blocks.size()), fastest}});
  if (!job.pipeline.boundaries.empty() || job.pipeline.cut == "uniform") weigh(made, "the planned cut", pipeline::find(made.problem).cut);
  return made;
}

}  // namespace

Result<PipelinePlan> plan_pipeline(const config::Job& job, const Material& material) {
  if (job.pipeline.micro_batches > 0) return plan_with(job, material, job.pipeline.micro_batches);
  constexpr double as_good = 0.98;
  const auto nodes = static_cast<std::uint32_t>(job.cluster.nodes.size());
  auto small = plan_with(job, material, std::min(4 * nodes, job.global_batch));
  auto large = plan_with(job, material, std::min(2 * nodes, job.global_batch));
  if (!small) return large;
  if (!large) return small;
  const auto speed = [](const PipelinePlan& made) { return made.micro_batch / pipeline::cost_of(made.problem, made.cut).slot_s; };
  return speed(*small) >= as_good * speed(*large) ? std::move(small) : std::move(large);
}

}  // namespace motley::engine
