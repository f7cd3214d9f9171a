// Whole pipelines over real sockets, in one process and on one pump, with mathematics that anybody can do by hand: a chain of blocks, each
// of which multiplies by its one value.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "plan/partition.h"
#include "run/conductor_process.h"
#include "run/processes_for_tests.h"
#include "run/stage_process.h"

namespace motley::run {
namespace {

constexpr std::uint32_t blocks = 6;
constexpr std::uint64_t mini_batches = 40;
constexpr std::uint64_t samples = 8;  // of a mini-batch

/// Blocks one after the other, however they are cut: the same bits.
class Chain final : public store::StageSource {
 public:
  Chain(bool first, bool last, std::size_t count) : first_(first), last_(last), count_(count) {}
  store::Loss forward(std::uint64_t micro, std::span<const float> values, std::span<const std::uint32_t> batch, const Activation& input,
                      Activation& output) override {
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
      return {};
    }
    store::Loss loss{0, 0, x.size()};
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float off = x[i] - 0.05F * static_cast<float>(1 + batch[i] % 7);
      loss.sum += static_cast<double>(off * off);
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
  }
  void weight_gradient(std::uint64_t micro, double scale, std::span<float> out) override {
    const Kept& kept = kept_.at(micro);
    for (std::size_t b = 0; b < kept.weights.size(); ++b) out[b] += static_cast<float>(scale) * kept.weights[b];
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
  std::size_t count_;  // of its values; the rest is ballast
  std::map<std::uint64_t, Kept> kept_;
};

/// The last stage has ballast too, so that its part takes its time to come.
store::StagePlace place_of(const plan::Stage& stage, std::uint64_t ballast) {
  const std::uint64_t count = stage.last - stage.first;
  store::StagePlace place{{{0, stage.first, count}}, count, count};
  if (stage.last < blocks || ballast == 0) return place;
  place.pieces.push_back({count, blocks, ballast});
  place.values += ballast;
  return place;
}

policy::Schedule constant_rate() {
  policy::ScheduleSpec rates;
  rates.lr = 0.02;
  return {rates, samples, 100, mini_batches * samples};
}

store::StageReplicaOptions replica_options() {
  store::StageReplicaOptions options;
  options.samples = options.global_batch = samples;
  options.epoch_samples = 100;
  options.seed = 4;
  return options;
}

/// What a pipeline that updates in step must end with.
std::vector<float> train_by_hand(std::uint32_t micros, std::uint64_t total = mini_batches * samples) {
  const Batching batching{total, samples, micros};
  store::StageReplicaOptions options = replica_options();
  options.total_samples = total;
  options.parameters = blocks;
  options.micro_batches = micros;
  options.reads_samples = true;
  store::StagePart part;
  part.values.assign(blocks, 0.9F);
  store::StageReplica replica(options, std::make_unique<Chain>(true, true, blocks), part);
  const policy::Schedule rates = constant_rate();
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

  [[nodiscard]] static cluster::Spec cluster() {
    cluster::Spec spec;
    spec.silence_deadline = no_deadline;
    for (std::uint32_t n = 0; n < nodes; ++n) {
      cluster::Node node;
      node.name = node_name(n);
      node.samples_per_second = 1e5;
      node.link = {std::chrono::microseconds(20), 1e8, 1e8};
      spec.nodes.push_back(node);
    }
    return spec;
  }
  [[nodiscard]] static plan::Problem problem() {
    plan::Problem made;
    for (std::uint32_t b = 0; b < blocks; ++b) made.blocks.push_back({"b", 1e-5, 1e-5, 1e-5, 8, 8, 4});
    for (std::uint32_t n = 0; n < nodes; ++n) made.devices.push_back({node_name(n), 1, 0, 0});
    made.links.assign(nodes, std::vector<plan::Between>(nodes, {1e8, 2e-5}));
    return made;
  }

  void start_conductor() {
    ConductorProcessOptions made;
    made.listen = address;
    made.transport = options;
    made.job = "the job";
    made.cluster = cluster();
    made.conductor.problem = problem();
    made.conductor.cut = begins_with.empty() ? plan::uniform(made.conductor.problem) : begins_with;
    made.conductor.reschedule = [name = schedule](const plan::Problem& p, const plan::Cut& cut) {
      return plan::make_schedule({name, micros, 0}, p, cut);
    };
    made.conductor.recut = [](const plan::Problem& p) { return std::optional(plan::uniform(p)); };
    made.conductor.mini_batches = mini_batches;
    made.model.values.assign(blocks + ballast, 0.9F);
    made.places = [this](const plan::Cut& cut) {
      std::vector<store::StagePlace> places;
      for (const plan::Stage& stage : cut) places.push_back(place_of(stage, ballast));
      return places;
    };
    made.samples = samples;
    made.total_samples = total;
    made.evaluate_every = 10;
    made.checkpoint_every = checkpoint_every;
    made.start_deadline = made.empty_deadline = no_deadline;
    ConductorHooks hooks;
    hooks.evaluate = [](std::span<const float> values) { return Result<Judgement>(Judgement{0.5, static_cast<double>(values.size())}); };
    hooks.save = [](const KeptModel&) -> Outcome { return Done{}; };
    hooks.saving = [this] { told_when_saving.emplace_back(conductor->model().updates, story.version()); };
    hooks.log = [this](const std::string& line) { log.push_back(line); };
    hooks.told = [this](const trace::Event& event) { story.events.push_back(event); };
    conductor = std::make_unique<ConductorProcess>(io, std::move(made), std::move(hooks));
    const Outcome started = conductor->start([this](Result<protocol::Ending> how) { over = std::move(how); });
    ASSERT_TRUE(started.ok()) << started.error().message;
  }

  void start_stage(std::uint32_t node, bool emulated = false) {
    const PrepareStage prepare = [this, node, emulated](const std::string& text) -> Result<StageKit> {
      if (text != "the job") return bad_input("another job");
      StageKit kit;
      kit.cluster = cluster();
      kit.node = NodeId{node};
      kit.problem = problem();
      kit.rates = constant_rate();
      kit.replica = replica_options();
      kit.replica.total_samples = total;
      kit.mini_batches = mini_batches;
      kit.keep_every = 5;
      kit.make = [](const plan::Cut& cut, std::uint32_t stage) -> Result<std::unique_ptr<store::StageSource>> {
        return std::unique_ptr<store::StageSource>(
            std::make_unique<Chain>(stage == 0, stage + 1 == cut.size(), cut[stage].last - cut[stage].first));
      };
      kit.place = [this](const plan::Cut& cut, std::uint32_t stage) { return place_of(cut[stage], ballast); };
      if (emulated) kit.emulated.emplace(kit.cluster, kit.node, 1);
      kit.job = options.job;
      return kit;
    };
    StageProcessOptions made;
    made.chief = address;
    made.listen = fresh_socket();
    made.transport = options;
    made.node = node_name(node);
    made.first_pause = std::chrono::milliseconds(1);
    made.patience = std::chrono::hours(1);
    stages[node] = std::make_unique<StageProcess>(io, std::move(made), prepare, [](const std::string&) {});
    stages[node]->start([this, node](const Outcome& how) {
      EXPECT_TRUE(how.ok()) << how.error().message;
      ended.push_back(node);
    });
  }
  void start_all(bool emulated = false) {
    start_conductor();
    for (std::uint32_t n = 0; n < nodes; ++n) start_stage(n, emulated);
  }
  auto is_over() {
    return run_until(io, [this] { return over.has_value(); });
  }
  void expect_good_end() {
    ASSERT_TRUE(over->ok()) << over->error().message;
    EXPECT_EQ((*over)->why, protocol::Ended::every_sample_counted);
    EXPECT_EQ((*over)->updates, mini_batches);
  }

  [[nodiscard]] std::vector<float> values() const {
    return {conductor->model().values.begin(), conductor->model().values.begin() + blocks};
  }

  static constexpr std::uint32_t micros = 4;
  std::uint64_t ballast = 0;
  std::uint64_t total = mini_batches * samples;
  std::uint64_t checkpoint_every = 0;
  plan::Cut begins_with;  // empty: over all nodes
  std::string schedule = "gpipe";
  transport::Options options = patient();
  transport::Address address = fresh_socket();
  boost::asio::io_context io;
  std::vector<std::string> log;
  Story story;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> told_when_saving;  // the model's version, and the newest that the trace tells of
  std::optional<Result<protocol::Ending>> over;
  std::unique_ptr<ConductorProcess> conductor;
  std::map<std::uint32_t, std::unique_ptr<StageProcess>> stages;
  std::vector<std::uint32_t> ended;
};

TEST_F(PipelineProcesses, EndWithTheBitsOfTheHand) {
  start_all();
  ASSERT_TRUE(is_over());
  expect_good_end();
  EXPECT_EQ(values(), train_by_hand(micros));
  EXPECT_EQ(story.count(trace::Kind::evaluated), 4U);
  EXPECT_EQ(story.count(trace::Kind::part_began), 3 * 3 * micros * mini_batches);
  EXPECT_EQ(story.count(trace::Kind::committed), 3 * mini_batches);
  EXPECT_TRUE(std::is_sorted(story.events.begin(), story.events.end(), [](const trace::Event& a, const trace::Event& b) {
    return a.kind != trace::Kind::evaluated && b.kind != trace::Kind::evaluated && a.at < b.at;
  })) << "told in order of time";
}

TEST_F(PipelineProcesses, EndWithTheSameBitsOnEmulatedDevicesAndLinks) {
  checkpoint_every = 5;
  start_all(true);
  ASSERT_TRUE(is_over());
  expect_good_end();
  EXPECT_EQ(values(), train_by_hand(micros));
  EXPECT_EQ(told_when_saving.size(), mini_batches / checkpoint_every);
  for (const auto& [saved, told] : told_when_saving) EXPECT_GE(told, saved) << "a checkpoint without its trace";
}

TEST_F(PipelineProcesses, AStageWhosePartComesLateFindsWhatCameBeforeIt) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  ballast = std::uint64_t{1} << 18U;  // there every copy takes its time
#else
  ballast = std::uint64_t{1} << 23U;
#endif
  start_all();
  ASSERT_TRUE(is_over());
  expect_good_end();
  EXPECT_EQ(values(), train_by_hand(micros));
  EXPECT_EQ(conductor->model().values.back(), 0.9F);
}

TEST_F(PipelineProcesses, LosingAStageWhilePartsComeIsNoWorseThanLater) {
  ballast = std::uint64_t{1} << 21U;
  for (const std::uint32_t victim : {0U, 1U, 2U}) {
    SCOPED_TRACE(victim);
    address = fresh_socket();
    over.reset();
    log.clear();
    start_all();
    ASSERT_TRUE(run_until(io, [this] { return !log.empty() && log.back().find("training begins") == 0; }));
    stages.erase(victim);
    start_stage(victim);
    ASSERT_TRUE(is_over());
    expect_good_end();
    EXPECT_EQ(values(), train_by_hand(micros));
    stages.clear();
    conductor.reset();
  }
}

TEST_F(PipelineProcesses, WhoRunsAheadComesToTheEndToo) {
  for (const char* name : {"adapipe", "2bw", "pipedream"}) {
    SCOPED_TRACE(name);
    schedule = name;
    address = fresh_socket();
    over.reset();
    start_all();
    ASSERT_TRUE(is_over());
    expect_good_end();
    stages.clear();
    conductor.reset();
  }
}

TEST_F(PipelineProcesses, AStageThatIsLostIsDoneWithoutAndTakenInAgain) {
  start_all();
  ASSERT_TRUE(run_until(io, [this] { return story.version() >= 12 || over; }));
  stages.erase(1);  // as dead as a process
  ASSERT_TRUE(run_until(io, [this] { return story.count(trace::Kind::recut) >= 2 || over; }));
  EXPECT_TRUE(std::any_of(log.begin(), log.end(), [](const std::string& line) { return line.find("a stage was lost: 2 stages") == 0; }));
  start_stage(1);
  ASSERT_TRUE(is_over());
  expect_good_end();
  EXPECT_EQ(values(), train_by_hand(micros)) << "what was done again was not counted twice";
}

TEST_F(PipelineProcesses, WhatIsLeftOverAtTheEndIsTrainedToo) {
  for (const std::uint64_t left : {1U, 3U, 7U}) {
    SCOPED_TRACE(left);
    address = fresh_socket();
    over.reset();
    total = (mini_batches - 1) * samples + left;
    start_all();
    ASSERT_TRUE(is_over());
    expect_good_end();
    EXPECT_EQ((*over)->samples, total);
    EXPECT_EQ(values(), train_by_hand(micros, total));
    stages.clear();
    conductor.reset();
  }
}

TEST_F(PipelineProcesses, AnyStageMayBeLostWhenOthersThanTheFirstOnesTakeOver) {
  for (const std::uint32_t victim : {0U, 1U, 2U}) {
    SCOPED_TRACE(victim);
    address = fresh_socket();
    over.reset();
    story = {};
    log.clear();
    begins_with = {{0, blocks, victim}};  // one stage; then two, which nobody has heard of before
    start_conductor();
    for (const std::uint32_t node : {0U, 1U, 2U})
      if (node != victim) start_stage(node);
    ASSERT_TRUE(run_until(io, [this] { return log.size() == 2; }));  // both are here
    start_stage(victim);
    ASSERT_TRUE(run_until(io, [this] { return story.version() >= 12 || over; }));
    stages.erase(victim);
    ASSERT_TRUE(is_over());
    expect_good_end();
    EXPECT_EQ(values(), train_by_hand(micros));
    std::set<WorkerId> announced;
    for (const trace::Event& e : story.events) {
      if (e.kind == trace::Kind::joined) announced.insert(e.worker);
      const bool does = e.kind == trace::Kind::part_began || e.kind == trace::Kind::committed;
      ASSERT_TRUE(!does || announced.contains(e.worker)) << e.worker.value;
    }
    EXPECT_EQ(announced.size(), 2U);
    stages.clear();
    conductor.reset();
  }
}

TEST_F(PipelineProcesses, StagesWaitForAConductorThatComesBack) {
  start_all();
  ASSERT_TRUE(run_until(io, [this] { return story.version() >= 12 || over; }));
  conductor.reset();
  start_conductor();  // from the beginning: it has no checkpoint here
  ASSERT_TRUE(is_over());
  expect_good_end();
  EXPECT_EQ(values(), train_by_hand(micros));
}

}  // namespace
}  // namespace motley::run
