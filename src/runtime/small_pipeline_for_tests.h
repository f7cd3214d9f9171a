// For tests: whole pipelines over real sockets, in one process and on one event loop. The model is a chain of blocks, each of which
// multiplies by its one value.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "pipeline/partition.h"
#include "runtime/pipeline_chief_process.h"
#include "runtime/processes_for_tests.h"
#include "runtime/stage_process.h"
#include "transport/impostor_for_tests.h"

namespace motley::runtime {

inline constexpr std::uint32_t blocks = 6;
inline constexpr std::uint64_t mini_batches = 40;
inline constexpr std::uint64_t samples = 8;  // of a mini-batch

enum class Made { output, gradient_of_inputs, gradient_of_weights };
/// May change the output of a stage.
using Spoils = std::function<void(Made what, std::uint64_t micro, std::span<float> values)>;

/// The blocks of a stage. Every cut gives the same bits.
class Chain final : public StageSource {
 public:
  Chain(
      bool first, bool last, std::size_t count, Gate* gate = nullptr, Spoils spoils = [](Made, std::uint64_t, std::span<float>) {})
      : first_(first), last_(last), count_(count), gate_(gate), spoils_(std::move(spoils)) {}
  StepResult forward(std::uint64_t micro, std::span<const float> values, std::span<const std::uint32_t> batch, const Activation& input,
                     Activation& output) override {
    if (gate_ != nullptr) gate_->pass();
    Kept& kept = kept_[micro];
    kept.values = values = values.first(count_);
    std::vector<float> x = input.values;
    if (first_)
      for (const std::uint32_t sample : batch) x.push_back(0.1F * static_cast<float>(1 + sample % 7));
    for (const float value : values) {
      kept.read.push_back(x);
      for (float& one : x) one *= value;
    }
    if (!last_) {
      output.values = x;
      output.shape = {static_cast<std::int64_t>(x.size())};
      spoils_(Made::output, micro, output.values);
      return {};
    }
    StepResult loss{0, 0, x.size()};
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float off = x[i] - 0.05F * static_cast<float>(1 + batch[i] % 7);
      loss.loss_sum += static_cast<double>(off * off);
      kept.gradient.push_back(2 * off / static_cast<float>(x.size()));
    }
    return loss;
  }
  void input_gradient(std::uint64_t micro, const Activation& output_gradient, Activation& input_gradient) override {
    Kept& kept = kept_.at(micro);
    if (!last_) kept.gradient = output_gradient.values;
    std::vector<float> gradient = kept.gradient;
    kept.weights.resize(kept.values.size());
    for (std::size_t b = kept.values.size(); b-- > 0;)
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        kept.weights[b] += gradient[i] * kept.read[b][i];
        gradient[i] *= kept.values[b];
      }
    if (first_) return;
    input_gradient.values = gradient;
    input_gradient.shape = {static_cast<std::int64_t>(gradient.size())};
    spoils_(Made::gradient_of_inputs, micro, input_gradient.values);
  }
  void weight_gradient(std::uint64_t micro, double scale, std::span<float> out) override {
    const Kept& kept = kept_.at(micro);
    for (std::size_t b = 0; b < kept.weights.size(); ++b) out[b] += static_cast<float>(scale) * kept.weights[b];
    spoils_(Made::gradient_of_weights, micro, out);
    kept_.erase(micro);
  }

 private:
  struct Kept {
    std::span<const float> values;
    std::vector<std::vector<float>> read;  // by each block
    std::vector<float> gradient;
    std::vector<float> weights;
  };
  bool first_, last_;
  std::size_t count_;  // of its values; the rest only takes time to transfer
  Gate* gate_;
  Spoils spoils_;
  std::map<std::uint64_t, Kept> kept_;
};

/// The last stage has unused values too, so that sending its part takes time.
inline store::StagePlace place_of(const pipeline::Stage& stage, std::uint64_t ballast) {
  const std::uint64_t count = stage.last - stage.first;
  store::StagePlace place{{{0, stage.first, count}}, count, count};
  if (stage.last < blocks || ballast == 0) return place;
  place.pieces.push_back({count, blocks, ballast});
  place.values += ballast;
  return place;
}

inline policy::LrSchedule constant_rate() {
  policy::LrScheduleSpec rates;
  rates.lr = 0.02;
  return {rates, samples, 100, mini_batches * samples};
}

inline store::StageReplicaOptions replica_options() {
  store::StageReplicaOptions options;
  options.samples = options.global_batch = samples;
  options.epoch_samples = 100;
  options.seed = 4;
  return options;
}

/// The values with which a synchronous pipeline must end.
inline std::vector<float> train_by_hand(std::uint32_t micros, std::uint64_t total = mini_batches * samples) {
  const Batching batching{total, samples, micros};
  store::StageReplicaOptions options = replica_options();
  options.total_samples = total;
  options.parameters = blocks;
  options.micro_batches = micros;
  options.reads_samples = true;
  store::StagePart part;
  part.values.assign(blocks, 0.9F);
  store::StageReplica replica(options, std::make_unique<Chain>(true, true, blocks), part);
  const policy::LrSchedule rates = constant_rate();
  for (std::uint64_t mini = 0; mini < mini_batches; ++mini) {
    const double rate = rates.rate(mini * samples);
    const std::uint64_t first = mini * micros, last = first + batching.micros_of(mini);
    for (std::uint64_t micro = first; micro < last; ++micro) replica.begin(micro, 0, rate);
    for (std::uint64_t micro = first; micro < last; ++micro) {
      Activation none;
      replica.forward(micro, {}, none);
      replica.input_gradient(micro, {}, none);
      replica.weight_gradient(micro);
    }
    replica.commit(mini, rate);
  }
  return *replica.values();
}

class PipelineProcesses : public testing::Test {
 protected:
  static constexpr std::uint32_t nodes = 3;

  [[nodiscard]] cluster::Spec cluster() const {
    cluster::Spec spec;
    spec.heartbeat = heartbeat;
    spec.silence_deadline = no_deadline;
    spec.step_limit = step_limit;
    spec.heartbeat = std::chrono::milliseconds(100);
    spec.faults = faults;
    for (std::uint32_t n = 0; n < nodes; ++n) {
      cluster::Node node;
      node.name = node_name(n);
      node.samples_per_second = 1e5;
      node.link = {std::chrono::microseconds(20), 1e8, 1e8};
      spec.nodes.push_back(node);
    }
    return spec;
  }
  [[nodiscard]] static pipeline::Problem problem() {
    pipeline::Problem made;
    for (std::uint32_t b = 0; b < blocks; ++b) made.blocks.push_back({"b", 1e-5, 1e-5, 1e-5, 8, 8, 4});
    for (std::uint32_t n = 0; n < nodes; ++n) made.devices.push_back({node_name(n), 1, 0, 0});
    made.links.assign(nodes, std::vector<pipeline::DeviceLink>(nodes, {1e8, 2e-5}));
    return made;
  }

  void start_pipeline_chief() {
    PipelineChiefProcessOptions made;
    made.listen = address;
    made.transport = options;
    made.job = "the job";
    made.cluster = cluster();
    made.pipeline_chief.problem = problem();
    made.pipeline_chief.cut = begins_with.empty() ? pipeline::uniform(made.pipeline_chief.problem) : begins_with;
    made.pipeline_chief.reschedule = [name = schedule](const pipeline::Problem& p, const pipeline::Cut& cut) {
      return pipeline::make_schedule({name, micros, 0}, p, cut);
    };
    made.pipeline_chief.repartition = [](const pipeline::Problem& p) { return std::optional(pipeline::uniform(p)); };
    made.pipeline_chief.mini_batches = mini_batches;
    made.pipeline_chief.step_limit = step_limit;
    made.model.values.assign(blocks + ballast, 0.9F);
    made.places = [this](const pipeline::Cut& cut) {
      std::vector<store::StagePlace> places;
      for (const pipeline::Stage& stage : cut) places.push_back(place_of(stage, ballast));
      return places;
    };
    made.samples = samples;
    made.total_samples = total;
    made.evaluate_every = 10;
    made.checkpoint_every = checkpoint_every;
    made.start_deadline = made.empty_deadline = no_deadline;
    made.join_deadline = join_deadline;
    PipelineChiefHooks hooks;
    hooks.evaluate = [](std::span<const float> values) {
      return Result<EvaluationResult>(EvaluationResult{0.5, static_cast<double>(values.size())});
    };
    hooks.save = [](const KeptModel&) -> Outcome { return Done{}; };
    hooks.saving = [this] { recorded_when_saving.emplace_back(pipeline_chief->model().updates, story.version()); };
    hooks.log = [this](const std::string& line) { log.push_back(line); };
    hooks.on_event = [this](const trace::Event& event) { story.events.push_back(event); };
    pipeline_chief = std::make_unique<PipelineChiefProcess>(io, std::move(made), std::move(hooks));
    const Outcome started = pipeline_chief->start([this](Result<protocol::TrainingOutcome> how) { over = std::move(how); });
    ASSERT_TRUE(started.ok()) << started.error().message;
  }

  void start_stage(std::uint32_t node, bool emulated = false) {
    const PrepareStage prepare = [this, node, emulated](const std::string& text) -> Result<StageSetup> {
      if (text != "the job") return bad_input("another job");
      if (before_preparing) before_preparing();
      StageSetup setup;
      setup.cluster = cluster();
      setup.node = NodeId{node};
      setup.problem = problem();
      setup.rates = constant_rate();
      setup.replica = replica_options();
      setup.replica.total_samples = total;
      setup.mini_batches = mini_batches;
      setup.snapshot_every = 5;
      const Spoils mine = [spoils = spoils, node](Made what, std::uint64_t micro, std::span<float> values) {
        if (node == 1 && spoils) spoils(what, micro, values);
      };
      setup.make = [this, mine](const pipeline::Cut& cut, std::uint32_t stage) -> Result<std::unique_ptr<StageSource>> {
        return std::unique_ptr<StageSource>(
            std::make_unique<Chain>(stage == 0, stage + 1 == cut.size(), cut[stage].last - cut[stage].first, &gate, mine));
      };
      setup.place = [this](const pipeline::Cut& cut, std::uint32_t stage) { return place_of(cut[stage], ballast); };
      if (emulated) setup.emulated.emplace(setup.cluster, setup.node, 1);
      setup.job = options.job;
      return setup;
    };
    StageProcessOptions made;
    made.chief = address;
    made.listen = listens[node] = fresh_socket();
    made.transport = options;
    made.node = node_name(node);
    made.reconnect = {
        .first_pause = std::chrono::milliseconds(1), .longest_pause = std::chrono::milliseconds(8), .patience = std::chrono::hours(1)};
    made.join_heartbeat = join_heartbeat;
    made.join_deadline = join_deadline;
    stages[node] = std::make_unique<StageProcess>(io, std::move(made), prepare, [](const std::string&) {});
    stages[node]->start([this, node](const Outcome& how) {
      EXPECT_TRUE(how.ok()) << how.error().message;
      ended.push_back(node);
    });
  }
  void start_all(bool emulated = false) {
    start_pipeline_chief();
    for (std::uint32_t n = 0; n < nodes; ++n) start_stage(n, emulated);
  }
  auto is_over() {
    return run_until(io, [this] { return over.has_value(); });
  }
  void expect_good_end() {
    ASSERT_TRUE(over->ok()) << over->error().message;
    EXPECT_EQ((*over)->why, protocol::EndReason::every_sample_counted);
    EXPECT_EQ((*over)->updates, mini_batches);
  }

  [[nodiscard]] std::vector<float> values() const {
    return {pipeline_chief->model().values.begin(), pipeline_chief->model().values.begin() + blocks};
  }

  static constexpr std::uint32_t micros = 4;
  std::uint64_t ballast = 0;
  Duration step_limit = no_deadline;
  std::vector<cluster::Fault> faults;
  std::uint64_t total = mini_batches * samples;
  std::uint64_t checkpoint_every = 0;
  pipeline::Cut begins_with;  // empty: over all nodes
  Duration heartbeat = from_seconds(1);
  Duration join_deadline = no_deadline;
  Duration join_heartbeat = from_seconds(10);
  std::function<void()> before_preparing;  // on the preparing threads
  Spoils spoils;                           // changes the output of node 1
  std::string schedule = "gpipe";
  transport::Options options = patient();
  transport::Address address = fresh_socket();
  boost::asio::io_context io;
  std::vector<std::string> log;
  Story story;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> recorded_when_saving;  // the model's version, and the newest in the trace
  std::optional<Result<protocol::TrainingOutcome>> over;
  std::unique_ptr<PipelineChiefProcess> pipeline_chief;
  std::map<std::uint32_t, std::unique_ptr<StageProcess>> stages;
  std::vector<std::uint32_t> ended;
  std::map<std::uint32_t, transport::Address> listens;  // addresses of stages
  Gate gate;                                            // before each forward
  const Opens opens{gate};

  /// Stops all computing during training.
  void start_and_wait() {
    start_all();
    ASSERT_TRUE(run_until(io, [this] { return story.version() >= 7 || over; }));
    gate.close();
    transport::run_ready(io);
  }
};

}  // namespace motley::runtime
