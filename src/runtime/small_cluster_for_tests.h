// For tests: a chief and workers in one process, on one event loop, over a unix socket, with LinearSource; and a reference of the same
// training without processes. Deadlines are far away: a worker that is expelled was really lost.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policy/strategies.h"
#include "protocol/chief_driver_for_tests.h"
#include "runtime/chief_process.h"
#include "runtime/linear_source_for_tests.h"
#include "runtime/worker_process.h"
#include "store/epochs.h"
#include "store/replica.h"
#include "trace/events_for_tests.h"
#include "transport/pairs_for_tests.h"

namespace motley::runtime {

inline constexpr Duration no_deadline = from_seconds(1e6);
inline constexpr std::uint32_t small_batch = 12;
inline constexpr double small_momentum = 0.9;

/// The name of the node with this index. Names and indices are in different order, so that mixing them up is visible.
inline std::string node_name(std::uint32_t node_index) { return "node-" + std::to_string(9 - node_index); }

struct SmallJob {
  std::string strategy = "bsp";
  std::uint32_t quorum = 3;
  std::uint32_t servers = 1;
  Duration join_deadline = no_deadline;
  Duration join_heartbeat = from_seconds(10);
  std::uint64_t epoch_samples = 50;  // not a multiple of the batch: leases cross epochs
  std::uint64_t total_samples = 300;
  std::uint64_t checkpoint_every = 0;
  std::uint64_t seed = 11;
  OptimizerSpec optimizer{.momentum = small_momentum, .weight_decay = 0.001};
  bool emulated = false;       // devices and links of finite speed
  bool devices = false;        // with their own memory
  bool rounds = false;         // which compute in bf16
  bool bf16_transfer = false;  // and report it, so that parameters are sent as bf16
  policy::Knobs knobs{};
  std::vector<std::uint32_t> batches{};
  Duration heartbeat = from_seconds(1);
  Duration silence_deadline = no_deadline;
  Duration step_limit = no_deadline;

  [[nodiscard]] protocol::ChiefOptions chief_options() const {
    return {.epoch_samples = epoch_samples,
            .total_samples = total_samples,
            .evaluate_every = 100,
            .max_time = {},
            .servers = servers,
            .quorum = quorum,
            .silence_deadline = silence_deadline,
            .step_limit = step_limit,
            .start_deadline = no_deadline,
            .empty_deadline = no_deadline,
            .checkpoint_every = checkpoint_every};
  }
  [[nodiscard]] policy::StrategySpec strategy_spec() const { return {.kind = strategy, .knobs = knobs, .batches = batches}; }
  [[nodiscard]] protocol::Chief chief() const { return protocol::ChiefDriver(chief_options(), strategy_spec(), small_batch).chief; }
  [[nodiscard]] store::ReplicaOptions replica() const {
    return {.optimizer = optimizer, .values = linear_values, .parameters = linear_parameters};
  }
  [[nodiscard]] cluster::Spec cluster() const {
    const cluster::Link fast{.latency = std::chrono::microseconds(20), .up_bytes_per_second = 1e8, .down_bytes_per_second = 1e8};
    cluster::Spec spec;
    spec.server_nic = fast;
    spec.servers = servers;
    spec.heartbeat = heartbeat;
    spec.silence_deadline = silence_deadline;
    spec.step_limit = step_limit;
    if (emulated) spec.groups.push_back({"rack", fast});
    for (std::uint32_t n = 0; n < 4; ++n) {
      cluster::Node node;
      node.name = node_name(n);
      node.samples_per_second = 1e5 * (n + 1);
      node.link = fast;
      node.device = emulated ? cluster::DeviceKind::emulated : cluster::DeviceKind::cpu;
      if (emulated && n > 0) node.group = 0;
      spec.nodes.push_back(node);
    }
    return spec;
  }
};

/// Reference: the same state machines and source without processes. An undisturbed training must end with these bits.
inline std::vector<float> train_by_hand(const SmallJob& job) {
  protocol::ChiefDriver chief(job.chief_options(), job.strategy_spec(), small_batch);
  const store::Layout layout = linear_layout();
  store::ShardStore store(layout, ServerId{0}, job.optimizer, linear_start());
  LinearSource source;
  store::Epochs epochs(job.epoch_samples, job.seed);
  std::map<WorkerId, std::vector<float>> pulled;
  std::map<std::pair<WorkerId, Step>, std::vector<float>> pushed;
  const auto serve = [&] {
    for (const protocol::ChiefAction& action : chief.last) {
      const auto* send = std::get_if<protocol::Send>(&action);
      if (send == nullptr) continue;
      if (const auto* release = std::get_if<wire::Release>(&send->message)) {
        pulled[release->worker].resize(linear_values);
        store.snapshot(release->rho, pulled[release->worker]);
      } else if (const auto* update = std::get_if<wire::Apply>(&send->message)) {
        std::vector<store::WeightedPart> parts;
        for (const wire::Part& part : update->parts) parts.push_back({pushed.at({part.worker, part.step}), part.weight});
        store.apply({store::UpdateKind::gradient, update->rate, update->momentum, update->share}, parts);
      }
    }
  };
  for (std::uint32_t n = 0; n < job.quorum; ++n) {
    chief.hello(n, wire::Hello{.node = node_name(n), .attempt = 1, .node_index = n});
    serve();
  }
  while (!chief.chief.finished()) {
    const auto orders = chief.orders;
    for (const auto& [worker, order] : orders) {
      store::Replica replica(job.replica());
      NoStreaming still;
      std::vector<float>& out = pushed[{worker, order.step}];
      out.resize(linear_values);
      replica.contribute(source, {pulled.at(worker), epochs.samples_of(order.lease)}, out, still);
      chief.finish(worker);
      serve();
    }
  }
  std::vector<float> values(linear_values);
  store.values(values);
  return values;
}

/// The events that a chief recorded.
class Story {
 public:
  std::vector<trace::Event> events;

  [[nodiscard]] std::uint64_t version() const {
    std::uint64_t newest = 0;
    for (const trace::Event& event : events)
      if (const auto* update = event.as<trace::Applied>()) newest = std::max(newest, update->version.value);
    return newest;
  }
  template <class T>
  [[nodiscard]] std::size_t count() const {
    return all<T>().size();
  }
  template <class T>
  [[nodiscard]] std::vector<trace::Timed<T>> all() const {
    return trace::all_of<T>(events);
  }

  /// How often each position in [0, total) was counted, from leases and counts alone.
  [[nodiscard]] std::vector<int> times_counted(const SmallJob& job) const {
    std::map<std::pair<WorkerId, Step>, std::vector<trace::Leased>> leases;
    std::vector<int> times(job.total_samples);
    for (const trace::Event& event : events) {
      if (const auto* leased = event.as<trace::Leased>()) leases[{leased->worker, leased->step}].push_back(*leased);
      const auto* counted = event.as<trace::Counted>();
      if (counted == nullptr) continue;
      for (const trace::Leased& lease : leases[{counted->worker, counted->step}])
        for (std::uint64_t p = lease.first; p < lease.last; ++p) ++times.at(lease.epoch * job.epoch_samples + p);
    }
    return times;
  }
};

class SmallChief {
 public:
  Story story;
  std::vector<std::string> log;
  std::optional<Result<protocol::TrainingOutcome>> over;
  std::vector<std::byte> inputs;
  std::function<void(const trace::Event&)> when_told = [](const trace::Event&) {};
  std::function<double(std::span<const float>)> loss = [](std::span<const float> values) { return static_cast<double>(values.size()); };
  std::unique_ptr<ChiefProcess> process;

  SmallChief(boost::asio::io_context& event_loop, const SmallJob& job, const transport::Address& address, const Saved* from = nullptr,
             const transport::Options& options = {}) {
    protocol::Chief machine = job.chief();
    InitialState initial_state{linear_start(), std::nullopt, {}};
    if (from != nullptr) {
      EXPECT_TRUE(machine.resume(from->chief));
      const auto values = std::as_const(*from->values).floats();
      initial_state = {{values.begin(), values.end()}, from->moments, from->chief.version};
    }
    ChiefHooks hooks;
    hooks.evaluate = [this](std::span<const float> values) { return Result<EvaluationResult>(EvaluationResult{0.5, loss(values)}); };
    hooks.save = [this](const Saved& saved) {
      const std::lock_guard lock(mutex_);
      saved_.push_back(saved);
      return Outcome(Done{});
    };
    hooks.log = [this](const std::string& line) { log.push_back(line); };
    hooks.on_event = [this](const trace::Event& event) {
      story.events.push_back(event);
      when_told(event);
    };
    hooks.inputs = [this](std::span<const std::byte> record) { inputs.insert(inputs.end(), record.begin(), record.end()); };
    process = std::make_unique<ChiefProcess>(event_loop,
                                             ChiefProcessOptions{address,
                                                                 options,
                                                                 "the job",
                                                                 job.cluster(),
                                                                 job.chief_options(),
                                                                 linear_layout(job.servers),
                                                                 job.optimizer,
                                                                 {},
                                                                 job.join_deadline,
                                                                 2},
                                             std::move(machine), std::move(initial_state), std::move(hooks));
    const Outcome started = process->start([this](Result<protocol::TrainingOutcome> how) { over = std::move(how); });
    EXPECT_TRUE(started.ok()) << started.error().message;
  }

  /// All checkpoints so far, oldest first.
  [[nodiscard]] std::vector<Saved> saved() const {
    const std::lock_guard lock(mutex_);
    return saved_;
  }
  [[nodiscard]] std::vector<float> values() const {
    const SharedBuffer last = process->final_values();
    if (!last) return {};
    const auto floats = std::as_const(*last).floats();
    return {floats.begin(), floats.end()};
  }

 private:
  mutable std::mutex mutex_;  // the background thread saves
  std::vector<Saved> saved_;
};

class SmallWorker {
 public:
  std::vector<std::string> log;
  std::optional<Outcome> over;
  std::unique_ptr<WorkerProcess> process;

  /// Computations wait at `gate`, if there is one.
  SmallWorker(boost::asio::io_context& event_loop, const SmallJob& job, const transport::Address& address, std::uint32_t node_index,
              Gate* gate = nullptr, const transport::Options& options = {}, std::chrono::milliseconds patience = std::chrono::hours(10)) {
    const PrepareWorker prepare = [=](const std::string& text) -> Result<WorkerSetup> {
      if (text != "the job") return bad_input("another job");
      WorkerSetup setup;
      LinearTurns turns;
      if (gate != nullptr) turns.before = [gate] { gate->pass(); };
      setup.step_executor = StepExecutorSetup{
          std::make_unique<LinearSource>(turns), job.replica(), linear_layout(job.servers), job.epoch_samples, job.seed, std::nullopt};
      if (job.devices) {
        setup.step_executor.source = std::make_unique<LinearDevice>(job.rounds);
        setup.step_executor.keeps_values = true;
        setup.step_executor.bf16_transfer = job.bf16_transfer;
        setup.step_executor.batch_multiple = 1;
      }
      setup.cluster = job.cluster();
      setup.node = NodeId{node_index};
      setup.node_index = node_index;
      setup.job = options.job;
      if (job.emulated) setup.step_executor.emulated.emplace(setup.cluster, *setup.node, job.seed);
      return setup;
    };
    process = std::make_unique<WorkerProcess>(event_loop,
                                              WorkerProcessOptions{.chief = address,
                                                                   .transport = options,
                                                                   .node = node_name(node_index),
                                                                   .join_heartbeat = job.join_heartbeat,
                                                                   .reconnect = {.first_pause = std::chrono::milliseconds(1),
                                                                                 .longest_pause = std::chrono::milliseconds(8),
                                                                                 .patience = patience,
                                                                                 .first_contact = std::chrono::milliseconds(0)}},
                                              prepare, [this](const std::string& line) { log.push_back(line); });
    process->start([this](Outcome how) { over = std::move(how); });
  }
};

}  // namespace motley::runtime
