#include "engine/process_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

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

/// A learner whose threads inside one operation are set by whichever thread comes to own it.
class OnItsThread final : public GradientSource {
 public:
  OnItsThread(std::unique_ptr<learn::Learner> inner, int threads) : inner_(std::move(inner)), threads_(threads) {}
  void initialize(std::uint64_t seed, std::span<float> values) override { inner_->initialize(seed, values); }
  StepResult gradient(std::span<const float> values, std::span<const std::uint32_t> samples, std::span<float> out, StepIo& flow) override {
    settle();
    return inner_->gradient(values, samples, out, flow);
  }
  StepResult evaluate(std::span<const float> values) override {
    settle();
    return inner_->evaluate(values);
  }
  LocalSgd* local_sgd() override {
    settle();
    return inner_->local_sgd();
  }

 private:
  void settle() {
    if (settled_) return;
    settled_ = true;
    learn::use_threads(threads_);
  }
  std::unique_ptr<learn::Learner> inner_;
  int threads_;
  bool settled_ = false;
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

Result<runtime::WorkerSetup> prepare_worker(const std::string& job_text, const std::string& name,
                                            const std::optional<DeviceChoice>& chosen) {
  auto job = config::parse_job(job_text, "the chief's job");
  if (!job) return job.error();
  // The worker's own node: the job's, if it has one of this name, or a stranger's.
  const auto found =
      std::find_if(job->cluster.nodes.begin(), job->cluster.nodes.end(), [&](const cluster::Node& n) { return n.name == name; });
  std::uint32_t index = static_cast<std::uint32_t>(found - job->cluster.nodes.begin());
  const bool stranger = found == job->cluster.nodes.end();
  if (stranger) {
    cluster::Node added;
    added.name = name;
    added.device = cluster::DeviceKind::cpu;
    added.samples_per_second = 1;
    job->cluster.nodes.push_back(std::move(added));
  }
  cluster::Node& node = job->cluster.nodes[index];
  int threads = node.device == cluster::DeviceKind::cpu ? std::max(node.device_index, 1) : 1;
  bool emulated = node.device == cluster::DeviceKind::emulated;
  if (chosen) {
    node.device = chosen->kind;
    emulated = chosen->kind == cluster::DeviceKind::emulated;
    threads = chosen->kind == cluster::DeviceKind::cpu ? chosen->number : 1;
    if (chosen->kind == cluster::DeviceKind::cuda) node.device_index = chosen->number;
    if (chosen->samples_per_second > 0) node.samples_per_second = chosen->samples_per_second;
  }
  const auto material = load_material(*job);
  if (!material) return material.error();
  auto training = make_training(*job, *material, job->strategy);
  if (!training) return training.error();
  if (!training->learning) return bad_input("the chief's job: model.kind: found \"none\", expected a model");
  bool bf16_transfer = false;
  if (node.device == cluster::DeviceKind::cuda) {
    auto on_gpu = learn::make_learner(job->model, material->data, {.cuda = true, .index = node.device_index});
    if (!on_gpu) return Error{on_gpu.error()};
    bf16_transfer = (*on_gpu)->bf16_transfer();
    training->learning = std::move(*on_gpu);
    transport::watch_memory({[gpu = node.device_index](std::span<std::byte> memory) { learn::pin(memory, gpu); }, learn::unpin});
  }

  runtime::WorkerSetup setup;
  setup.step_executor.source = std::make_unique<OnItsThread>(std::move(training->learning), threads);
  setup.step_executor.replica = training->replica;
  setup.step_executor.layout = training->layout;
  setup.step_executor.epoch_samples = material->epoch_samples;
  setup.step_executor.shards = material->shards;
  setup.step_executor.seed = job->seed;
  setup.step_executor.layer_timing = training->layer_timing;
  if (node.device == cluster::DeviceKind::cuda) {
    setup.step_executor.batch_multiple = chosen ? std::max(node.batch_multiple, cluster::gpu_batch_multiple) : node.batch_multiple;
    const std::uint32_t most = training->max_batch[index];  // 0: no limit
    const auto share = static_cast<std::uint32_t>(job->global_batch / job->cluster.nodes.size());
    const std::uint32_t usual = std::max(share / setup.step_executor.batch_multiple * setup.step_executor.batch_multiple,
                                         std::min(setup.step_executor.batch_multiple, share));
    setup.step_executor.usual = std::max(
        1U, static_cast<std::uint32_t>(std::min<std::uint64_t>(most > 0 ? std::min(usual, most) : usual, material->epoch_samples)));
    setup.step_executor.new_sizes_are_slow = true;
    setup.step_executor.keeps_values = true;
    setup.step_executor.bf16_transfer = bf16_transfer;
  }
  if (emulated) {
    setup.step_executor.emulated.emplace(job->cluster, NodeId{index}, job->seed);
    setup.step_executor.batch_multiple = node.batch_multiple > 1 ? node.batch_multiple : 0;
  }
  setup.cluster = job->cluster;
  if (emulated && !stranger) setup.node = NodeId{index};
  if (!stranger) setup.node_index = index;
  setup.max_batch = training->max_batch[index];
  setup.job = runtime::sha256(job_text);
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
