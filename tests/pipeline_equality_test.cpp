// A synchronous pipeline equals plain training, bit for bit, with any cut and any device speeds.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "engine/pipeline_simulation.h"
#include "engine/training.h"
#include "learn/learner.h"
#include "learn/stage_learner.h"
#include "store/epochs.h"
#include "store/optimizer.h"

namespace motley::engine {
namespace {

constexpr const char* job_text = R"(
[job]
max_epochs = 0.5
[model]
kind = "mlp"
hidden = [12, 9, 8, 7]
[data]
kind = "synthetic"
samples = 640
features = 10
classes = 4
[optimizer]
lr = 0.05
momentum = 0.9
[batch]
global = 32
[pipeline]
profile = "equal"
[cluster.link]
bandwidth = "1MB/s"
latency_s = 0.001
[[cluster.node]]
count = 5
samples_per_second = 100
jitter = 0.3
)";

class PipelineEquality : public testing::Test {
 protected:
  void SetUp() override {
    if (!learn::available()) GTEST_SKIP() << learn::describe_backend();
    learn::use_threads(1);
    auto read = config::parse_job(job_text, "the test's job");
    ASSERT_TRUE(read.ok()) << read.error().message;
    job = *read;
    auto loaded = load_material(job);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    material = *loaded;
  }

  [[nodiscard]] std::vector<float> simulated(const std::string& strategy) const {
    auto spec = config::read_strategy(job, strategy);
    EXPECT_TRUE(spec.ok()) << (spec.ok() ? "" : spec.error().message);
    SimulationOptions options;
    options.strategy = *spec;
    options.label = strategy;
    options.seed = 3;
    auto result = simulate(job, material, options);
    EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
    return result.ok() ? result->values : std::vector<float>{};
  }

  /// One process: the micro-batches of each update one after the other, summed in order.
  [[nodiscard]] std::vector<float> plain(std::uint32_t micros) const {
    const auto learner = std::move(learn::make_learner(job.model, material.data).value());
    const auto stage = std::move(learn::make_stages(job.model, material.data, std::vector<std::uint32_t>{0}).value().front());
    std::vector<float> values(learner->shape().values());
    learner->initialize(3, values);
    store::Optimizer optimizer(job.optimizer, values.size());
    store::Epochs epochs(material.epoch_samples, 3);
    const std::uint64_t batch = job.global_batch;
    const auto all = static_cast<std::uint64_t>(job.max_epochs * static_cast<double>(material.epoch_samples));
    for (std::uint64_t first = 0; first < all; first += batch) {
      std::vector<float> gradient(values.size());
      const std::uint64_t left = std::min(batch, all - first);
      const std::uint64_t parts =
          (left * micros + batch - 1) / batch;  // the rest is not divided into smaller micro-batches than the others
      for (std::uint64_t m = 0; m < parts; ++m) {
        const auto& samples = epochs.samples_of(between(first + m * left / parts, first + (m + 1) * left / parts));
        Activation none;
        Activation out;
        stage->forward(m, values, samples, none, out);
        stage->input_gradient(m, none, out);
        stage->weight_gradient(m, static_cast<double>(samples.size()) / static_cast<double>(batch), gradient);
      }
      optimizer.update(values, gradient, 0.05, 0.9);
    }
    return values;
  }
  /// Positions of training, epoch after epoch.
  [[nodiscard]] Lease between(std::uint64_t first, std::uint64_t last) const {
    Lease lease;
    while (first < last) {
      const std::uint64_t epoch = first / material.epoch_samples;
      const std::uint64_t end = std::min(last, (epoch + 1) * material.epoch_samples);
      lease.ranges.push_back(
          {static_cast<std::uint32_t>(epoch), first - epoch * material.epoch_samples, end - epoch * material.epoch_samples});
      first = end;
    }
    return lease;
  }

  config::Job job;
  Material material;
};

TEST_F(PipelineEquality, Naive_model_parallelism_equals_plain_training) { EXPECT_EQ(simulated("naive-mp"), plain(1)); }

TEST_F(PipelineEquality, Gpipe_over_five_stages_equals_plain_training) {
  EXPECT_EQ(simulated("gpipe:micro_batches=4"), plain(4));
  EXPECT_EQ(simulated("1f1b:micro_batches=4"), plain(4));
}

TEST_F(PipelineEquality, Deaths_do_not_change_the_model) {
  job.evaluate_every = 0.1;
  job.cluster.faults.push_back({at_seconds(1), cluster::FaultKind::kill, NodeId{2}, {}, 1});
  job.cluster.faults.push_back({at_seconds(2), cluster::FaultKind::kill, NodeId{0}, {}, 1});
  job.cluster.faults.push_back({at_seconds(2.5), cluster::FaultKind::join, NodeId{2}, {}, 1});
  EXPECT_EQ(simulated("gpipe:micro_batches=4"), plain(4));
}

TEST_F(PipelineEquality, Smaller_last_mini_batch_is_trained_too) {
  job.global_batch = 48;
  for (const double epochs : {1.0, 1.5, 0.51, 0.05}) {  // the last mini-batch has 16, 0, 38 and 32 of 48 samples
    SCOPED_TRACE(epochs);
    job.max_epochs = epochs;
    EXPECT_EQ(simulated("naive-mp"), plain(1));
    EXPECT_EQ(simulated("gpipe:micro_batches=7"), plain(7));
    EXPECT_EQ(simulated("1f1b:micro_batches=7"), plain(7));
    SimulationOptions options;
    for (const char* strategy : {"gpipe:micro_batches=7", "pipedream", "pipedream:micro_batches=4", "2bw", "adapipe"}) {
      options.strategy = *config::read_strategy(job, strategy);
      const auto result = simulate(job, material, options);
      ASSERT_TRUE(result.ok()) << result.error().message;
      EXPECT_EQ(result->outcome.samples, static_cast<std::uint64_t>(epochs * static_cast<double>(material.epoch_samples))) << strategy;
      EXPECT_EQ(result->outcome.closed_epochs, static_cast<std::uint32_t>(epochs)) << strategy;
    }
  }
}

TEST_F(PipelineEquality, One_stage_with_one_micro_batch_equals_plain_training) {
  job.pipeline.stages = 1;
  EXPECT_EQ(simulated("gpipe:micro_batches=1"), plain(1));
  EXPECT_EQ(simulated("pipedream"), plain(1)) << "no stage runs ahead";
}

TEST_F(PipelineEquality, Running_ahead_changes_the_model) { EXPECT_NE(simulated("pipedream"), plain(1)); }

TEST_F(PipelineEquality, Unsupported_options_are_refused) {
  const auto refusal = [&](const std::string& strategy) {
    auto spec = config::read_strategy(job, strategy);
    if (!spec) return spec.error().message;
    SimulationOptions options;
    options.strategy = *spec;
    options.label = strategy;
    const auto result = simulate(job, material, options);
    return result ? "" : result.error().message;
  };
  const auto says = [](const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; };
  EXPECT_TRUE(says(refusal("gpipe:micro_batches=200"), "found 200 with gpipe:micro_batches=200, expected at most 32"));
  EXPECT_TRUE(says(refusal("pipedream:micro_batches=5"), "expected a number that divides batch.global, which is 32"));
  EXPECT_TRUE(says(refusal("naive-mp:micro_batches=4"), "a knob that naive-mp does not take"));
  EXPECT_TRUE(says(refusal("adapipe:without=judge"), "one of predict, clipping, soften, defer, replan, caps"));
  EXPECT_TRUE(says(refusal("gpipe:time_limited=false"), "a knob that gpipe does not take"));
  job.cluster.faults.push_back({at_seconds(1), cluster::FaultKind::partition, NodeId{2}, {}, 1});
  EXPECT_TRUE(says(refusal("adapipe"), "found a partition at 1 s on node"));
  job.cluster.faults.clear();
  job.max_seconds = 5;
  EXPECT_TRUE(says(refusal("adapipe"), "job.max_seconds: found 5, expected none with adapipe"));
  job.max_seconds.reset();
  for (cluster::Node& node : job.cluster.nodes) node.memory_bytes = 4000;
  EXPECT_TRUE(says(refusal("gpipe:micro_batches=4"), "cluster.node.memory: found 4000 bytes on node"));
}

TEST_F(PipelineEquality, Diverged_run_is_reported) {
  SimulationOptions options;
  options.strategy = *config::read_strategy(job, "gpipe:micro_batches=4:lr=1000");
  const auto result = simulate(job, material, options);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->outcome.why, protocol::EndReason::diverged);
}

TEST_F(PipelineEquality, Moved_blocks_keep_their_momentum) {
  job.cluster.nodes.resize(3);
  job.max_epochs = 4;
  job.cluster.nodes[1].samples_per_second = 100;
  for (cluster::Node& node : job.cluster.nodes) node.jitter = 0;
  job.cluster.faults.push_back({at_seconds(5), cluster::FaultKind::slow, NodeId{1}, from_seconds(1e6), 3});
  SimulationOptions options;
  options.strategy = *config::read_strategy(job, "adapipe:without=clipping");
  options.seed = 3;
  const auto moved = simulate(job, material, options);
  ASSERT_TRUE(moved.ok()) << moved.error().message;
  EXPECT_GE(moved->pipeline->repartitions, 1U);
  options.strategy = *config::read_strategy(job, "adapipe:without=replan");
  const auto stayed = simulate(job, material, options);
  ASSERT_TRUE(stayed.ok());
  EXPECT_EQ(stayed->pipeline->repartitions, 0U);
  ASSERT_FALSE(moved->summary.curve().empty());
  EXPECT_LT(moved->summary.curve().back().loss, 1.3 * stayed->summary.curve().back().loss + 0.05) << "the loss is about as low";
}

TEST_F(PipelineEquality, Same_seed_gives_the_same_bits) { EXPECT_EQ(simulated("adapipe"), simulated("adapipe")); }

}  // namespace
}  // namespace motley::engine
