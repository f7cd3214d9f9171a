#include "engine/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "cluster/cost.h"
#include "codec/codec.h"
#include "config/pipeline_strategy.h"
#include "engine/pipeline_training.h"
#include "learn/registry.h"
#include "policy/strategies.h"
#include "store/tensor_places.h"

namespace motley::engine {
namespace {

/// The largest step of each node, in samples.
Result<std::vector<std::uint32_t>> limits_of_memory(const config::Job& job, std::uint64_t parameter_bytes, std::uint64_t activation_bytes) {
  std::vector<std::uint32_t> limits;
  for (const cluster::Node& node : job.cluster.nodes) {
    const auto most = cluster::max_batch(node.memory_bytes, parameter_bytes, activation_bytes);
    if (!most)
      return bad_input(
          fmt::format("{}: cluster.node.memory: found {} bytes on node \"{}\", expected at least {} for a step of one sample "
                      "(4 x {} of parameters, {} of activations); take a smaller model, or leave the node or its memory out",
                      job.file.string(), node.memory_bytes, node.name, cluster::step_bytes(parameter_bytes, activation_bytes, 1),
                      parameter_bytes, activation_bytes));
    limits.push_back(*most);
  }
  return limits;
}

/// Seconds to encode and decode one value on a CPU core (docs/scale.md). A constant, not a measurement, so that a replayed run decides the
/// same. Emulated and simulated devices encode in no time.
constexpr double coding_s_per_value = 3e-9;

double coding_s(const config::Job& job, const store::Layout& layout) {
  const auto& nodes = job.cluster.nodes;
  const bool real =
      std::any_of(nodes.begin(), nodes.end(), [](const cluster::Node& n) { return n.device != cluster::DeviceKind::emulated; });
  return real ? coding_s_per_value * static_cast<double>(layout.values) : 0;
}

/// Bytes of all slices together at each precision.
policy::Traffic traffic_of(const config::Job& job, const store::Layout& layout) {
  const auto bytes = [&](std::uint8_t bits) {
    double sum = 0;
    for (const store::Slice& slice : layout.slices) {
      const auto codec = codec::make(slice.bits(bits));
      check(codec.ok(), "there is a codec for each precision");
      sum += static_cast<double>((*codec)->encoded_bytes(slice.count));
    }
    return sum;
  };
  return {bytes(32), bytes(16), bytes(8), bytes(4), bytes(2), coding_s(job, layout)};
}

/// When each slice is read and its gradient is final, by the counted work of each block.
store::LayerTiming timing_of_layers(learn::Learner& learner, const store::Layout& layout) {
  std::vector<double> work;
  for (const learn::BlockProfile& block : learner.profile()) work.push_back(block.work);
  std::vector<std::uint32_t> blocks;
  for (const Tensor& tensor : learner.shape().tensors) blocks.push_back(tensor.block);
  return store::layer_timing(layout, store::tensor_places(learner.shape()), blocks, work);
}

protocol::ChiefOptions chief_options(const config::Job& job, const Material& material) {
  const double epoch = static_cast<double>(material.epoch_samples);
  protocol::ChiefOptions chief;
  chief.epoch_samples = material.epoch_samples;
  chief.global_batch = job.global_batch;
  chief.total_samples = std::max<std::uint64_t>(1, std::llround(job.max_epochs * epoch));
  chief.evaluate_every = std::max<std::uint64_t>(1, std::llround(job.evaluate_every * epoch));
  if (job.max_seconds) chief.max_time = from_seconds(*job.max_seconds);
  chief.servers = job.cluster.servers;
  if (material.shards) chief.shards = static_cast<std::uint32_t>(job.cluster.nodes.size());
  chief.silence_deadline = chief.start_deadline = job.cluster.silence_deadline;
  chief.step_limit = job.cluster.step_limit;
  chief.quorum = 0;
  for (std::uint32_t n = 0; n < job.cluster.nodes.size(); ++n) chief.quorum += cluster::present_at_start(job.cluster, NodeId{n}) ? 1 : 0;
  return chief;
}

}  // namespace

config::KnownKinds known_kinds() { return {learn::models().names(), learn::data_sets().names(), learn::losses().names()}; }

Result<Material> load_material(const config::Job& job) {
  if (job.timing_only) return Material{nullptr, job.timing_samples, nullptr};
  auto data = learn::load(job.data);
  if (!data) return data.error();
  Material material{std::move(*data), 0, nullptr};
  material.epoch_samples = learn::training_samples(*material.data);
  if (job.data.split == "by-label") {
    auto labels = learn::training_labels(*material.data);
    if (labels.empty())
      return bad_input(fmt::format("{}: data.split: found \"by-label\", expected \"shuffled\": a sample of {} has no one label",
                                   job.file.string(), job.data.kind));
    if (job.max_epochs != std::floor(job.max_epochs))
      return bad_input(
          fmt::format("{}: job.max_epochs: found {}, expected whole epochs, because data.split is \"by-label\": of a part of one "
                      "some nodes' classes would be missing",
                      job.file.string(), job.max_epochs));
    material.shards = std::make_shared<const std::vector<std::uint32_t>>(store::shards_by(labels, job.cluster.nodes.size()));
  }
  return material;
}

Result<Training> make_training(const config::Job& job, const Material& material, const policy::StrategySpec& spec) {
  if (config::is_pipeline(spec))
    return bad_input(
        fmt::format("{}: strategy.kind: found \"{}\", expected a data-parallel strategy such as hps; a pipeline's nodes "
                    "join with `motley stage`",
                    job.file.string(), spec.kind));
  std::unique_ptr<learn::Learner> learning;
  std::vector<store::TensorPlace> tensors{{0, job.timing_values, TensorKind::parameter}};
  if (!job.timing_only) {
    auto learner = learn::make_learner(job.model, material.data);
    if (!learner) return learner.error();
    learning = std::move(*learner);
    tensors = store::tensor_places(learning->shape());
  }
  store::Layout layout =
      store::cut(tensors, std::max<std::uint64_t>(1, job.slice_bytes / sizeof(float)), job.cluster.servers, job.layout_options);
  for (std::uint32_t s = 0; s < job.cluster.servers; ++s)
    if (layout.of(ServerId{s}).empty())
      return bad_input(
          fmt::format("{}: cluster.server.count: found {} servers for a model of {} slices; expected at most one server per slice (or a "
                      "smaller [wire] slice)",
                      job.file.string(), job.cluster.servers, layout.slices.size()));
  const bool normalizes = std::any_of(layout.slices.begin(), layout.slices.end(),
                                      [](const store::Slice& slice) { return slice.kind == TensorKind::statistic; });
  auto strategy =
      policy::make_strategy(spec, {job.global_batch, job.optimizer.momentum, traffic_of(job, layout), normalizes, job.schedule.warmup > 1});
  if (!strategy) return strategy.error();
  auto limits = limits_of_memory(job, layout.values * sizeof(float),
                                 learning ? learning->activation_bytes_per_sample() : job.timing_activation_bytes);
  if (!limits) return limits.error();

  const protocol::ChiefOptions chief = chief_options(job, material);
  policy::LrScheduleSpec schedule = job.schedule;
  schedule.lr = spec.knobs.lr.value_or(schedule.lr);
  const store::ReplicaOptions replica{job.optimizer,
                                      layout.values,
                                      learning ? learning->shape().parameters : layout.values,
                                      strategy->payload() == policy::Payload::delta,
                                      strategy->momentum(),
                                      strategy->tracks_updates(),
                                      strategy->control_variate()};
  store::LayerTiming layer_timing;
  if (job.streams && learning && !replica.local_steps) layer_timing = timing_of_layers(*learning, layout);
  return Training{std::move(learning),
                  std::move(*strategy),
                  policy::LrSchedule(schedule, job.global_batch, material.epoch_samples, chief.total_samples),
                  chief,
                  std::move(layout),
                  std::move(layer_timing),
                  replica,
                  *limits,
                  cluster::sum_of_parts(job.cluster, job.global_batch, *limits)};
}

}  // namespace motley::engine
