#include "engine/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "cluster/cost.h"
#include "config/pipeline_strategy.h"
#include "engine/pipeline_simulation.h"
#include "engine/pipeline_training.h"
#include "engine/training.h"
#include "sim/real_numbers.h"
#include "sim/world.h"

namespace motley::engine {
trace::Timeline timeline_window(const config::Job& job, std::uint64_t total_samples) {
  double step_s = 0;
  const double share = static_cast<double>(job.global_batch) / static_cast<double>(job.cluster.nodes.size());
  for (const cluster::Node& node : job.cluster.nodes) step_s = std::max(step_s, cluster::affine(node).at(share));
  const double steps = static_cast<double>(total_samples) / job.global_batch;
  return {at_seconds(std::min(40.0, steps / 4) * step_s), from_seconds(5 * step_s)};
}

namespace {

/// Places slices as a chief does that has measured the distances of its servers.
void place_by_distance(const cluster::Spec& cluster, store::Layout& layout) {
  std::vector<double> distances_s;
  for (std::uint32_t s = 0; s < cluster.servers; ++s) distances_s.push_back(seconds(cluster::distance_between(cluster, 0, s)));
  store::place(layout, store::head_starts(distances_s, cluster::receive_bandwidth(cluster)));
}

/// By node: a GPU that computes with bf16 weights. Deltas of local steps are sent as fp32.
std::vector<bool> sent_as_bf16(const config::Job& job, bool local_steps) {
  std::vector<bool> bf16_transfer;
  for (const cluster::Node& node : job.cluster.nodes)
    bf16_transfer.push_back(!local_steps && node.device == cluster::DeviceKind::cuda && job.model.precision == "bf16");
  return bf16_transfer;
}

Result<RunResult> run_job(const config::Job& job, const Material& material, const SimulationOptions& options) {
  auto training = make_training(job, material, options.strategy);
  if (!training) return training.error();

  sim::WorldOptions world_options;
  world_options.cluster = job.cluster;
  place_by_distance(job.cluster, training->layout);
  world_options.layout = training->layout;
  world_options.layer_timing = training->layer_timing;
  world_options.seed = options.seed;
  world_options.chief = training->chief;
  world_options.max_batch = training->max_batch;
  world_options.bf16_transfer = sent_as_bf16(job, training->replica.local_steps);

  std::unique_ptr<sim::RealNumbers> real;
  sim::NoNumbers none;
  if (training->learning) {
    sim::RealNumbersOptions numbers;
    numbers.layout = training->layout;
    numbers.optimizer = job.optimizer;
    numbers.parameters = training->replica.parameters;
    numbers.epoch_samples = material.epoch_samples;
    numbers.shards = material.shards;
    numbers.seed = options.seed;
    numbers.local_steps = training->replica.local_steps;
    numbers.local_momentum = training->replica.local_momentum;
    numbers.tracks_updates = training->replica.tracks_updates;
    numbers.control_variate = training->replica.control_variate;
    real = std::make_unique<sim::RealNumbers>(std::move(numbers), *training->learning);
  }

  RunResult result;
  trace::Writer writer;
  trace::Timeline timeline = timeline_window(job, training->chief.total_samples);
  Progress progress(options.progress, training->chief.total_samples);
  std::vector<trace::Sink*> sinks{&writer, &result.summary, &result.history, &result.state_timelines, &timeline, &progress};
  if (options.also != nullptr) sinks.push_back(options.also);
  trace::Tee tee(std::move(sinks));

  sim::World world(world_options, std::move(training->strategy), training->schedule, real ? static_cast<sim::Numbers&>(*real) : none, tee);
  result.outcome = world.run();
  result.label = options.label;
  result.seed = options.seed;
  result.timeline = timeline.lanes();
  result.trace_sha256 = writer.finish();
  result.sum_of_parts = training->sum_of_parts;
  if (real) {
    result.values.resize(training->layout.values);
    real->values(result.values);
  }
  return result;
}

}  // namespace

Result<RunResult> simulate(const config::Job& job, const Material& material, const SimulationOptions& options) {
  const auto failed = [&](const std::exception& failure) {
    return world_failed(
        fmt::format("{}, seed {}: cannot continue to compute the model \"{}\" with batches of {} samples in all: torch says: {}",
                    options.label, options.seed, job.model.kind, job.global_batch, failure.what()));
  };
  try {
    if (config::is_pipeline(options.strategy)) return simulate_pipeline(job, material, options);
    return run_job(job, material, options);
  } catch (const ComputationFailed& failure) {
    return failed(failure);
  } catch (const OutOfMemory& failure) {
    return failed(failure);
  }
}

}  // namespace motley::engine
