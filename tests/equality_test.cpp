// Numeric equality: BSP with unequal workers equals one process on the joined batch, bit for bit when the parts are reduced in the same
// order.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "base/rng.h"
#include "config/job.h"
#include "engine/simulation.h"
#include "learn/learner.h"
#include "policy/lr_schedule.h"
#include "store/optimizer.h"

namespace motley::engine {
namespace {

constexpr std::uint64_t seed = 5;
constexpr std::uint32_t steps = 20;
const std::vector<std::uint32_t> batches{58, 29, 29, 12};
constexpr std::uint32_t global_batch = 128;

config::Job unequal_job(std::uint32_t servers) {
  config::Job job;
  job.name = "equality";
  job.data.kind = "synthetic";
  job.data.samples = steps * global_batch;
  job.data.features = 32;
  job.data.classes = 5;
  job.model.hidden = {48, 24};
  job.max_epochs = 1;
  job.evaluate_every = 1;
  job.schedule.lr = 0.05;
  job.schedule.warmup = 5;
  job.optimizer.weight_decay = 1e-4;
  job.slice_bytes = 1024;
  job.strategy.kind = "bsp";
  job.strategy.batches = batches;
  cluster::Node node;
  node.overhead = from_seconds(0.002);
  node.link = {from_seconds(0.0002), 1e8, 1e8};
  for (const double speed : {1000.0, 1000.0, 500.0, 250.0}) {
    node.name = "w" + std::to_string(job.cluster.nodes.size());
    node.samples_per_second = speed;
    job.cluster.nodes.push_back(node);
  }
  job.cluster.servers = servers;
  job.cluster.server_nic = {from_seconds(0.0002), 2e8, 2e8};
  return job;
}

/// One process that computes the same parts, or one big batch, of each step, without any code of the protocol.
class OneProcess {
 public:
  explicit OneProcess(const config::Job& job)
      : material_(*load_material(job)),
        learner_(*learn::make_learner(job.model, material_.data)),
        values_(learner_->shape().values()),
        optimizer_(job.optimizer, learner_->shape().parameters),
        schedule_(job.schedule, global_batch, material_.epoch_samples, material_.epoch_samples),
        order_(permutation(static_cast<std::uint32_t>(material_.epoch_samples), Rng(seed, "epoch", 0))) {
    learner_->initialize(seed, values_);
  }

  std::vector<float> train(const std::vector<std::uint32_t>& parts) {
    const std::size_t n = values_.size();
    std::vector<float> ahead(n), gradient(n), sum(n);
    for (std::uint32_t step = 0; step < steps; ++step) {
      const double rate = schedule_.rate(std::uint64_t{step} * global_batch);
      optimizer_.look_ahead(values_, policy::look_ahead(0.9, 1), last_rate_, ahead);
      std::fill(sum.begin(), sum.end(), 0.0F);
      std::size_t first = std::size_t{step} * global_batch;
      for (std::size_t p = 0; p < parts.size(); ++p) {
        learner_->gradient(ahead, std::span(order_).subspan(first, parts[p]), gradient);
        first += parts[p];
        const float weight = static_cast<float>(parts[p] / static_cast<double>(global_batch));
        for (std::size_t i = 0; i < n; ++i) sum[i] = p == 0 ? weight * gradient[i] : sum[i] + weight * gradient[i];
      }
      optimizer_.update(values_, sum, rate, 0.9);
      last_rate_ = rate;
    }
    return values_;
  }

 private:
  Material material_;
  std::unique_ptr<learn::Learner> learner_;
  std::vector<float> values_;
  store::Optimizer optimizer_;
  policy::LrSchedule schedule_;
  std::vector<std::uint32_t> order_;
  double last_rate_ = 0;
};

std::vector<float> train_cluster(const config::Job& job) {
  SimulationOptions options;
  options.strategy = job.strategy;
  options.label = "bsp";
  options.seed = seed;
  auto result = simulate(job, *load_material(job), options);
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result->outcome.updates, steps);
  return result->values;
}

class Equality : public testing::TestWithParam<std::uint32_t> {
 protected:
  void SetUp() override {
    if (!learn::available()) GTEST_SKIP() << "built without torch";
    learn::use_threads(1);
  }
};

TEST_P(Equality, Unequal_workers_equal_one_process_bit_for_bit) {
  const config::Job job = unequal_job(GetParam());
  EXPECT_EQ(train_cluster(job), OneProcess(job).train(batches));
}

TEST_P(Equality, Unequal_workers_agree_with_one_big_batch_to_1e_5) {
  const config::Job job = unequal_job(GetParam());
  const std::vector<float> cluster = train_cluster(job);
  const std::vector<float> big = OneProcess(job).train({global_batch});
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < big.size(); ++i) {
    difference += std::pow(static_cast<double>(cluster[i]) - big[i], 2);
    size += std::pow(static_cast<double>(big[i]), 2);
  }
  EXPECT_LT(std::sqrt(difference / size), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Servers, Equality, testing::Values(1U, 2U, 3U));

}  // namespace
}  // namespace motley::engine
