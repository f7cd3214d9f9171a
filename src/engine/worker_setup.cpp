#include "engine/process_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "cluster/constants.h"
#include "config/job.h"
#include "engine/training.h"
#include "learn/pins.h"
#include "runtime/sha256.h"
#include "transport/memory_watch.h"

namespace motley::engine {
namespace {

template <class Number>
bool read_number(std::string_view text, Number& out) {
  const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), out);
  return failure == std::errc{} && stop == text.data() + text.size();
}

/// A learner that sets its number of threads per operation on the thread that first computes with it.
class ThreadedLearner final : public GradientSource {
 public:
  ThreadedLearner(std::unique_ptr<learn::Learner> inner, int threads) : inner_(std::move(inner)), threads_(threads) {}
  void initialize(std::uint64_t seed, std::span<float> values) override { inner_->initialize(seed, values); }
  StepResult gradient(std::span<const float> values, std::span<const std::uint32_t> samples, std::span<float> out, StepIo& io) override {
    set_threads();
    return inner_->gradient(values, samples, out, io);
  }
  StepResult evaluate(std::span<const float> values) override {
    set_threads();
    return inner_->evaluate(values);
  }
  LocalSgd* local_sgd() override {
    set_threads();
    return inner_->local_sgd();
  }

 private:
  void set_threads() {
    if (threads_set_) return;
    threads_set_ = true;
    learn::use_threads(threads_);
  }
  std::unique_ptr<learn::Learner> inner_;
  int threads_;
  bool threads_set_ = false;
};

}  // namespace

Result<DeviceChoice> parse_device(const std::string& text) {
  const Error wrong =
      bad_input(fmt::format("--device: found \"{}\", expected cpu, cpu:THREADS, cuda:N or emulated:SAMPLES_PER_SECOND", text));
  const std::size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  const std::string rest = colon == std::string::npos ? "" : text.substr(colon + 1);
  DeviceChoice choice;
  if (kind == "cpu") {
    choice.kind = cluster::DeviceKind::cpu;
    choice.number = 1;
    if (!rest.empty() && (!read_number(rest, choice.number) || choice.number < 1 || choice.number > 1024)) return wrong;
    return choice;
  }
  if (kind == "cuda") {
    choice.kind = cluster::DeviceKind::cuda;
    if (!rest.empty() && (!read_number(rest, choice.number) || choice.number < 0)) return wrong;
    return choice;
  }
  if (kind == "emulated") {
    choice.kind = cluster::DeviceKind::emulated;
    if (!rest.empty() && (!read_number(rest, choice.samples_per_second) || !(choice.samples_per_second > 0))) return wrong;
    return choice;
  }
  return wrong;
}

namespace {

/// The node of the job that a worker stands for.
struct OwnNode {
  std::uint32_t index = 0;
  bool listed = true;  // the job names it
  bool emulated = false;
  int threads = 1;
};

int threads_of(const cluster::Node& node) { return node.device == cluster::DeviceKind::cpu ? std::max(node.device_index, 1) : 1; }

/// Adds a CPU node to the job when it has none of this name.
OwnNode find_or_add_node(config::Job& job, const std::string& name) {
  auto& nodes = job.cluster.nodes;
  const auto found = std::find_if(nodes.begin(), nodes.end(), [&](const cluster::Node& n) { return n.name == name; });
  OwnNode own{.index = static_cast<std::uint32_t>(found - nodes.begin()), .listed = found != nodes.end()};
  if (!own.listed) {
    cluster::Node added;
    added.name = name;
    added.device = cluster::DeviceKind::cpu;
    added.samples_per_second = 1;
    nodes.push_back(std::move(added));
  }
  own.threads = threads_of(nodes[own.index]);
  own.emulated = nodes[own.index].device == cluster::DeviceKind::emulated;
  return own;
}

/// --device takes precedence over the job.
void apply_choice(const DeviceChoice& chosen, cluster::Node& node, OwnNode& own) {
  node.device = chosen.kind;
  own.emulated = chosen.kind == cluster::DeviceKind::emulated;
  own.threads = chosen.kind == cluster::DeviceKind::cpu ? chosen.number : 1;
  if (chosen.kind == cluster::DeviceKind::cuda) node.device_index = chosen.number;
  if (chosen.samples_per_second > 0) node.samples_per_second = chosen.samples_per_second;
}

/// Everything but the source of gradients.
runtime::WorkerSetup describe_worker(const config::Job& job, const std::string& job_text, const OwnNode& own, const Material& material,
                                     const Training& training) {
  const cluster::Node& node = job.cluster.nodes[own.index];
  runtime::WorkerSetup setup;
  setup.step_executor.replica = training.replica;
  setup.step_executor.layout = training.layout;
  setup.step_executor.epoch_samples = material.epoch_samples;
  setup.step_executor.shards = material.shards;
  setup.step_executor.seed = job.seed;
  setup.step_executor.layer_timing = training.layer_timing;
  if (own.emulated) {
    setup.step_executor.emulated.emplace(job.cluster, NodeId{own.index}, job.seed);
    setup.step_executor.batch_multiple = node.batch_multiple > 1 ? node.batch_multiple : 0;
  }
  setup.cluster = job.cluster;
  if (own.emulated && own.listed) setup.node = NodeId{own.index};
  if (own.listed) setup.node_index = own.index;
  setup.max_batch = training.max_batch[own.index];
  setup.job = runtime::sha256(job_text);
  return setup;
}

/// A GPU computes whole batches of a multiple of some samples, keeps its parameters, and begins with an equal share of the global batch.
void describe_gpu(const config::Job& job, std::uint32_t index, bool chosen, std::uint64_t epoch_samples, std::uint32_t max_batch,
                  runtime::StepExecutorSetup& executor) {
  const std::uint32_t multiple = job.cluster.nodes[index].batch_multiple;
  executor.batch_multiple = chosen ? std::max(multiple, cluster::gpu_batch_multiple) : multiple;
  const auto share = static_cast<std::uint32_t>(job.global_batch / job.cluster.nodes.size());
  const std::uint32_t usual = std::max(share / executor.batch_multiple * executor.batch_multiple, std::min(executor.batch_multiple, share));
  const std::uint32_t allowed = max_batch > 0 ? std::min(usual, max_batch) : usual;
  executor.usual = std::max(1U, static_cast<std::uint32_t>(std::min<std::uint64_t>(allowed, epoch_samples)));
  executor.new_sizes_are_slow = true;
  executor.keeps_values = true;
}

}  // namespace

Result<runtime::WorkerSetup> prepare_worker(const std::string& job_text, const std::string& name,
                                            const std::optional<DeviceChoice>& chosen) {
  auto job = config::parse_job(job_text, "the chief's job");
  if (!job) return job.error();
  OwnNode own = find_or_add_node(*job, name);
  if (chosen) apply_choice(*chosen, job->cluster.nodes[own.index], own);
  const auto material = load_material(*job);
  if (!material) return material.error();
  auto training = make_training(*job, *material, job->strategy);
  if (!training) return training.error();
  if (!training->learning) return bad_input("the chief's job: model.kind: found \"none\", expected a model");
  runtime::WorkerSetup setup = describe_worker(*job, job_text, own, *material, *training);
  if (const cluster::Node& node = job->cluster.nodes[own.index]; node.device == cluster::DeviceKind::cuda) {
    auto on_gpu = learn::make_learner(job->model, material->data, {.cuda = true, .index = node.device_index});
    if (!on_gpu) return Error{on_gpu.error()};
    setup.step_executor.bf16_transfer = (*on_gpu)->bf16_transfer();
    training->learning = std::move(*on_gpu);
    transport::watch_memory({[gpu = node.device_index](std::span<std::byte> memory) { learn::pin(memory, gpu); }, learn::unpin});
    describe_gpu(*job, own.index, chosen.has_value(), material->epoch_samples, setup.max_batch, setup.step_executor);
  }
  setup.step_executor.source = std::make_unique<ThreadedLearner>(std::move(training->learning), own.threads);
  return setup;
}

Result<runtime::WorkerSetup> prepare_worker(const std::string& job_text, const std::string& name, ProgramSource program) {
  auto job = config::parse_job(job_text, "the chief's job");
  if (!job) return job.error();
  if (!job->timing_only)
    return bad_input(
        fmt::format("{}: found a job that trains the model \"{}\", expected one whose gradients a program computes: join it "
                    "with `motley worker`",
                    name, job->model.kind));
  if (job->timing_values != program.values || job->timing_samples != program.samples)
    return bad_input(
        fmt::format("{}: found an objective of {} parameters and {} samples, expected {} and {}, as the chief has: run the "
                    "same program on the same data",
                    name, program.values, program.samples, job->timing_values, job->timing_samples));
  const OwnNode own = find_or_add_node(*job, name);
  const auto material = load_material(*job);
  if (!material) return material.error();
  const auto training = make_training(*job, *material, job->strategy);
  if (!training) return training.error();
  runtime::WorkerSetup setup = describe_worker(*job, job_text, own, *material, *training);
  setup.step_executor.source = std::move(program.source);
  return setup;
}

Result<runtime::ServerSetup> prepare_server(const std::string& job_text) {
  auto job = config::parse_job(job_text, "the chief's job");
  if (!job) return job.error();
  const auto material = load_material(*job);
  if (!material) return material.error();
  auto training = make_training(*job, *material, job->strategy);
  if (!training) return training.error();
  return runtime::ServerSetup{job->cluster, std::move(training->layout), job->optimizer, runtime::sha256(job_text)};
}

}  // namespace motley::engine
