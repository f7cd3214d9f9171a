#include "app/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "cluster/cost.h"
#include "policy/strategies.h"
#include "sim/real_numbers.h"
#include "store/layout.h"

namespace motley::app {
namespace {

/// What torch (or the system under it) threw in the midst of training; not our bug.
struct LearnerFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The border to torch's exceptions while it computes. Our own bugs pass.
template <class Deed>
auto at_border(Deed deed) {
  try {
    return deed();
  } catch (const Bug&) {
    throw;
  } catch (const std::exception& failure) {
    throw LearnerFailed(failure.what());
  }
}

/// The simulator's view of a learner.
class Learning : public sim::GradientSource {
 public:
  explicit Learning(std::unique_ptr<learn::Learner> learner) : learner_(std::move(learner)) {}
  [[nodiscard]] const learn::ModelShape& shape() const { return learner_->shape(); }
  [[nodiscard]] std::uint64_t activation_bytes_per_sample() const { return learner_->activation_bytes_per_sample(); }
  void initialize(std::uint64_t seed, std::span<float> values) override {
    at_border([&] { learner_->initialize(seed, values); });
  }
  sim::Loss gradient(std::span<const float> values, std::span<const std::uint32_t> samples, std::span<float> out) override {
    return at_border([&] { return loss(learner_->gradient(values, samples, out)); });
  }
  sim::Loss evaluate(std::span<const float> values) override {
    return at_border([&] { return loss(learner_->evaluate(values)); });
  }

 private:
  static sim::Loss loss(const learn::StepResult& r) { return {r.loss_sum, r.correct, r.samples}; }
  std::unique_ptr<learn::Learner> learner_;
};

std::vector<store::TensorPlace> places(const learn::ModelShape& shape) {
  std::vector<store::TensorPlace> result;
  for (const learn::Tensor& tensor : shape.tensors)
    result.push_back({tensor.offset, tensor.count,
                      tensor.kind == learn::TensorKind::parameter ? store::SliceKind::parameter : store::SliceKind::statistic});
  return result;
}

/// How many samples one step of each node may have.
Result<std::vector<std::uint32_t>> limits_of_memory(const Job& job, std::uint64_t parameter_bytes, std::uint64_t activation_bytes) {
  std::vector<std::uint32_t> limits;
  for (const cluster::Node& node : job.cluster.nodes) {
    const auto most = cluster::most_samples(node.memory_bytes, parameter_bytes, activation_bytes);
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

sim::WorldOptions world_options(const Job& job, const Material& material, store::Layout layout, std::uint64_t seed) {
  const double epoch = static_cast<double>(material.epoch_samples);
  sim::WorldOptions world;
  world.cluster = job.cluster;
  world.layout = std::move(layout);
  world.seed = seed;
  world.chief.epoch_samples = material.epoch_samples;
  world.chief.total_samples = std::max<std::uint64_t>(1, std::llround(job.max_epochs * epoch));
  world.chief.evaluate_every = std::max<std::uint64_t>(1, std::llround(job.evaluate_every * epoch));
  if (job.max_seconds) world.chief.max_time = from_seconds(*job.max_seconds);
  world.chief.servers = job.cluster.servers;
  world.chief.silence_deadline = job.cluster.silence_deadline;
  world.chief.quorum = 0;
  for (std::uint32_t n = 0; n < job.cluster.nodes.size(); ++n)
    world.chief.quorum += cluster::present_at_start(job.cluster, NodeId{n}) ? 1 : 0;
  return world;
}

/// A window of five equal-batch steps from where training has settled.
trace::Timeline timeline_window(const Job& job, std::uint64_t total_samples) {
  double step_s = 0;
  const double share = static_cast<double>(job.global_batch) / static_cast<double>(job.cluster.nodes.size());
  for (const cluster::Node& node : job.cluster.nodes) step_s = std::max(step_s, cluster::affine(node).at(share));
  const double steps = static_cast<double>(total_samples) / job.global_batch;
  return {at_seconds(std::min(40.0, steps / 4) * step_s), from_seconds(5 * step_s)};
}

/// Tells how far training is, now and then.
class Progress : public trace::Sink {
 public:
  Progress(std::function<void(double)> tell, std::uint64_t total) : tell_(std::move(tell)), total_(static_cast<double>(total)) {}
  void told(const trace::Event& event) override {
    if (event.kind == trace::Kind::evaluated && tell_) tell_(static_cast<double>(event.first) / total_);
  }

 private:
  std::function<void(double)> tell_;
  double total_;
};

}  // namespace

Result<Material> load_material(const Job& job) {
  if (job.timing_only) return Material{nullptr, job.timing_samples};
  auto data = learn::load(job.data);
  if (!data) return data.error();
  const std::uint64_t samples = learn::training_samples(**data);
  return Material{std::move(*data), samples};
}

namespace {

Result<SimulationResult> run_job(const Job& job, const Material& material, const SimulationOptions& options) {
  const policy::Knobs& knobs = options.strategy.knobs;
  const policy::Setting setting{job.global_batch, job.optimizer.momentum};
  auto strategy = policy::make_strategy(options.strategy, setting);
  if (!strategy) return strategy.error();

  std::unique_ptr<Learning> learning;
  std::vector<store::TensorPlace> tensors{{0, job.timing_values, store::SliceKind::parameter}};
  if (!job.timing_only) {
    auto learner = learn::make_learner(job.model, material.data);
    if (!learner) return learner.error();
    learning = std::make_unique<Learning>(std::move(*learner));
    tensors = places(learning->shape());
  }
  const store::Layout layout = store::cut(tensors, std::max<std::uint64_t>(1, job.slice_bytes / sizeof(float)), job.cluster.servers);
  for (std::uint32_t s = 0; s < job.cluster.servers; ++s)
    if (layout.of(ServerId{s}).empty())
      return bad_input(
          fmt::format("{}: cluster.server.count: found {} servers for a model of {} slices; expected at most one server per slice (or a "
                      "smaller [wire] slice)",
                      job.file.string(), job.cluster.servers, layout.slices.size()));

  auto limits = limits_of_memory(job, layout.values * sizeof(float),
                                 learning ? learning->activation_bytes_per_sample() : job.timing_activation_bytes);
  if (!limits) return limits.error();

  sim::WorldOptions world_opts = world_options(job, material, layout, options.seed);
  world_opts.most_samples = *limits;
  policy::ScheduleSpec schedule_spec = job.schedule;
  schedule_spec.lr = knobs.lr.value_or(schedule_spec.lr);
  const policy::Schedule schedule(schedule_spec, job.global_batch, material.epoch_samples, world_opts.chief.total_samples);

  std::unique_ptr<sim::RealNumbers> real;
  sim::NoNumbers none;
  if (learning) {
    sim::RealNumbersOptions numbers;
    numbers.layout = layout;
    numbers.optimizer = job.optimizer;
    numbers.parameters = learning->shape().parameters;
    numbers.epoch_samples = material.epoch_samples;
    numbers.seed = options.seed;
    numbers.local_steps = strategy->payload() == policy::Payload::delta;
    numbers.local_momentum = strategy->momentum();
    real = std::make_unique<sim::RealNumbers>(std::move(numbers), *learning);
  }

  SimulationResult result;
  trace::Writer writer;
  trace::Timeline timeline = timeline_window(job, world_opts.chief.total_samples);
  Progress progress(options.progress, world_opts.chief.total_samples);
  std::vector<trace::Sink*> sinks{&writer, &result.summary, &timeline, &progress};
  if (options.also != nullptr) sinks.push_back(options.also);
  trace::Tee tee(std::move(sinks));

  sim::World world(world_opts, std::move(*strategy), schedule, real ? static_cast<sim::Numbers&>(*real) : none, tee);
  result.ending = world.run();
  result.label = options.label;
  result.seed = options.seed;
  result.timeline = timeline.lanes();
  result.trace_sha256 = writer.finish();
  result.sum_of_parts = cluster::sum_of_parts(job.cluster, job.global_batch, *limits);
  if (real) {
    result.values.resize(layout.values);
    real->values(result.values);
  }
  return result;
}

}  // namespace

Result<SimulationResult> simulate(const Job& job, const Material& material, const SimulationOptions& options) {
  try {
    return run_job(job, material, options);
  } catch (const LearnerFailed& failure) {
    return world_failed(
        fmt::format("{}, seed {}: cannot go on computing the model \"{}\" with batches of {} samples in all: torch says: {}", options.label,
                    options.seed, job.model.kind, job.global_batch, failure.what()));
  }
}

}  // namespace motley::app
