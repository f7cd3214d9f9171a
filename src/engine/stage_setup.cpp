// Makes a stage's setup from the text of a pipeline's job.
#include <fmt/format.h>

#include <algorithm>

#include "config/job.h"
#include "config/pipeline_strategy.h"
#include "engine/pipeline_training.h"
#include "engine/process_setup.h"
#include "runtime/sha256.h"

namespace motley::engine {

Result<runtime::StageSetup> prepare_stage(const std::string& job_text, const std::string& name) {
  auto read = config::parse_job(job_text, "the pipeline chief's job");
  if (!read) return read.error();
  const auto job = std::make_shared<const config::Job>(std::move(*read));
  if (!config::is_pipeline(job->strategy))
    return bad_input(
        fmt::format("{}: found a job whose strategy is {}, expected a pipeline: join it with `motley worker`", name, job->strategy.kind));
  const auto& nodes = job->cluster.nodes;
  const auto found = std::find_if(nodes.begin(), nodes.end(), [&](const cluster::Node& n) { return n.name == name; });
  if (found == nodes.end())
    return bad_input(
        fmt::format("--node {}: found no such node in the job, expected the name of one: a model is cut across the nodes that "
                    "the job describes",
                    name));
  if (found->device == cluster::DeviceKind::cuda)
    return bad_input(fmt::format("{}: device: found cuda:{}, expected cpu or emulated: stages of a pipeline compute on the CPU", name,
                                 found->device_index));
  auto loaded = load_material(*job);
  if (!loaded) return loaded.error();
  const auto material = std::make_shared<const Material>(std::move(*loaded));
  auto whole = learn::make_learner(job->model, material->data);
  if (!whole) return whole.error();

  runtime::StageSetup setup;
  setup.cluster = job->cluster;
  setup.node = NodeId{static_cast<std::uint32_t>(found - nodes.begin())};
  setup.problem.blocks.resize((*whole)->shape().blocks);  // the pipeline chief knows their times
  add_devices(job->cluster, setup.problem);
  const Batches batches = batches_of(*job, *material, job->strategy);
  setup.rates = rates_of(*job, *material, job->strategy, batches);
  setup.replica.optimizer = optimizer_of(*job, job->strategy);
  setup.replica.samples = batches.samples;
  setup.replica.total_samples = batches.total;
  setup.replica.global_batch = job->global_batch;
  setup.replica.epoch_samples = material->epoch_samples;
  setup.replica.seed = job->seed;
  setup.mini_batches = batches.count;
  setup.snapshot_every = batches.evaluate_every;
  setup.slices = job->pipeline.slices;
  const int threads = found->device == cluster::DeviceKind::cpu ? std::max(found->device_index, 1) : 1;
  setup.make = [job, material, threads](const pipeline::Cut& cut, std::uint32_t stage) -> Result<std::unique_ptr<StageSource>> {
    learn::use_threads(threads);  // called on the thread that computes
    auto learners = make_stage_learners(*job, *material, cut);
    if (!learners) return learners.error();
    return std::unique_ptr<StageSource>(std::move((*learners)[stage]));
  };
  setup.place = [job, material, shape = (*whole)->shape()](const pipeline::Cut& cut, std::uint32_t stage) {
    return stage_places(*job, *material, shape, cut)[stage];
  };
  if (found->device == cluster::DeviceKind::emulated) setup.emulated.emplace(job->cluster, setup.node, job->seed);
  setup.job = runtime::sha256(job_text);
  return setup;
}

}  // namespace motley::engine
