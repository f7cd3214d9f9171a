// How a pipeline's job becomes what one of its stages computes with.
#include <fmt/format.h>

#include <algorithm>

#include "app/job.h"
#include "app/learning.h"
#include "app/pipeline_training.h"
#include "app/sha256.h"
#include "app/worker_device.h"

namespace motley::app {

Result<run::StageKit> prepare_stage(const std::string& job_text, const std::string& name) {
  auto read = parse_job(job_text, "the conductor's job");
  if (!read) return read.error();
  const auto job = std::make_shared<const Job>(std::move(*read));
  if (!is_pipeline(job->strategy))
    return bad_input(
        fmt::format("{}: found a job whose strategy is {}, expected a pipeline: join it with `motley work`", name, job->strategy.kind));
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

  run::StageKit kit;
  kit.cluster = job->cluster;
  kit.node = NodeId{static_cast<std::uint32_t>(found - nodes.begin())};
  kit.problem.blocks.resize((*whole)->shape().blocks);  // what they take the conductor knows
  add_devices(job->cluster, kit.problem);
  const Batches batches = batches_of(*job, *material, job->strategy);
  kit.rates = rates_of(*job, *material, job->strategy, batches);
  kit.replica.optimizer = optimizer_of(*job, job->strategy);
  kit.replica.samples = batches.samples;
  kit.replica.total_samples = batches.total;
  kit.replica.global_batch = job->global_batch;
  kit.replica.epoch_samples = material->epoch_samples;
  kit.replica.seed = job->seed;
  kit.mini_batches = batches.count;
  kit.keep_every = batches.evaluate_every;
  kit.slices = job->pipeline.slices;
  const int threads = found->device == cluster::DeviceKind::cpu ? std::max(found->device_index, 1) : 1;
  kit.make = [job, material, threads](const plan::Cut& cut, std::uint32_t stage) -> Result<std::unique_ptr<store::StageSource>> {
    learn::use_threads(threads);  // of the thread that computes
    auto learners = make_stage_learners(*job, *material, cut);
    if (!learners) return learners.error();
    return stage_source(std::move((*learners)[stage]));
  };
  kit.place = [job, material, shape = (*whole)->shape()](const plan::Cut& cut, std::uint32_t stage) {
    return stage_places(*job, *material, shape, cut)[stage];
  };
  if (found->device == cluster::DeviceKind::emulated) kit.emulated.emplace(job->cluster, kit.node, job->seed);
  kit.job = sha256(job_text);
  return kit;
}

}  // namespace motley::app
