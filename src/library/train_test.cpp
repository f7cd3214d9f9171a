// train() as a program calls it: strategies, workers that join, refusals, failures, stopping.
#include <gtest/gtest.h>
#include <motley/motley.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>

#include "library/linear_objective_for_tests.h"
#include "transport/pairs_for_tests.h"

namespace motley::library {
namespace {

constexpr const char* two_workers = R"(
[job]
max_epochs = 25
evaluate_every = 5
[optimizer]
lr = 0.2
momentum = 0
[batch]
global = 24
[[cluster.node]]
name = "fast"
samples_per_second = 40000
[[cluster.node]]
name = "slow"
samples_per_second = 10000
)";

Job job(const std::string& strategy = "bsp") { return {.text = two_workers, .name = "linear", .strategy = strategy}; }

/// The text of the Failure that train() throws; empty when it returns.
std::string refusal(const Session& session, const Job& job, const MakeObjective& make_objective) {
  try {
    (void)train(session, job, make_objective);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}

class EveryStrategy : public testing::TestWithParam<std::string> {};

TEST_P(EveryStrategy, Reaches_the_known_minimum) {
  const Trained trained = train({}, job(GetParam()), linear_objective);
  ASSERT_EQ(trained.values.size(), truth.size());
  for (std::size_t i = 0; i < truth.size(); ++i) EXPECT_NEAR(trained.values[i], truth[i], 0.05) << i;
  EXPECT_EQ(trained.samples, 25 * problem_samples);
  EXPECT_GT(trained.updates, 0U);
  EXPECT_FALSE(trained.stopped);
  ASSERT_FALSE(trained.evaluations.empty());
  EXPECT_GT(trained.evaluations.back().accuracy, 0.99);
  EXPECT_LT(trained.evaluations.back().loss, 0.01);
  EXPECT_EQ(trained.evaluations.back().samples, trained.samples);
}

INSTANTIATE_TEST_SUITE_P(Train, EveryStrategy, testing::Values("bsp", "lb-bsp", "ssp", "hps", "local-sgd:steps=4"),
                         [](const auto& strategy) {
                           std::string name = strategy.param.substr(0, strategy.param.find(':'));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Train, Same_seed_and_one_worker_give_the_same_bits) {
  Job alone = job();
  alone.overrides = {"cluster.node=[{name=\"only\", samples_per_second=40000}]"};
  alone.seed = 3;
  EXPECT_EQ(train({}, alone, linear_objective).values, train({}, alone, linear_objective).values);
}

TEST(Train, Works_without_evaluation) {
  const Trained trained = train({}, job(), [] {
    Objective objective = linear_objective();
    objective.evaluate = nullptr;
    return objective;
  });
  EXPECT_TRUE(trained.evaluations.empty());
  EXPECT_NEAR(trained.values[0], truth[0], 0.05);
}

TEST(Train, A_worker_that_joins_computes_with_the_chief) {
  const transport::UnixAddress address = transport::fresh_socket();
  Session chief{.listen = "unix:" + address.path, .local_workers = 1};
  std::atomic<std::uint64_t> computed_by_joined = 0;
  std::promise<Trained> joined;
  std::thread worker([&] {
    const Session session{.join = chief.listen, .node = "slow"};
    joined.set_value(train(session, {}, [&] {
      Objective objective = linear_objective();
      const auto gradient = objective.gradient;
      objective.gradient = [&, gradient](auto values, auto batch, auto out) {
        computed_by_joined += batch.size();
        return gradient(values, batch, out);
      };
      return objective;
    }));
  });
  const Trained trained = train(chief, job(), linear_objective);
  worker.join();
  EXPECT_EQ(trained.samples, 25 * problem_samples);
  EXPECT_EQ(2 * computed_by_joined, 25 * problem_samples) << "bsp: half of every batch";
  const Trained of_worker = joined.get_future().get();
  EXPECT_TRUE(of_worker.values.empty());
  EXPECT_FALSE(of_worker.stopped);
}

TEST(Train, A_worker_with_another_objective_is_refused) {
  const transport::UnixAddress address = transport::fresh_socket();
  std::stop_source stop;
  const Session chief{.listen = "unix:" + address.path, .local_workers = 0, .stop = stop.get_token()};
  std::string said;
  std::thread worker([&] {
    said = refusal({.join = chief.listen, .node = "fast"}, {}, [] {
      Objective objective = linear_objective();
      objective.samples = 7;
      return objective;
    });
    stop.request_stop();
  });
  EXPECT_TRUE(train(chief, job(), linear_objective).stopped);
  worker.join();
  EXPECT_NE(said.find("found an objective of 3 parameters and 7 samples, expected 3 and 240"), std::string::npos) << said;
}

TEST(Train, Stops_on_request_with_the_model_so_far) {
  std::stop_source stop;
  Job endless = job();
  endless.overrides = {"job.max_epochs=100000"};
  std::atomic<int> steps = 0;
  const Trained trained = train({.stop = stop.get_token()}, endless, [&] {
    Objective objective = linear_objective();
    const auto gradient = objective.gradient;
    objective.gradient = [&, gradient](auto values, auto batch, auto out) {
      if (++steps == 20) stop.request_stop();
      return gradient(values, batch, out);
    };
    return objective;
  });
  EXPECT_TRUE(trained.stopped);
  EXPECT_GT(trained.updates, 5U);
  EXPECT_EQ(trained.values.size(), truth.size());
}

TEST(Train, An_objective_that_throws_fails_with_its_text) {
  const std::string said = refusal({}, job(), [] {
    Objective objective = linear_objective();
    objective.gradient = [](auto, auto, auto) -> LossSum { throw std::runtime_error("no such file"); };
    return objective;
  });
  EXPECT_NE(said.find("no worker was left"), std::string::npos) << said;
  EXPECT_NE(said.find("the objective's gradient failed: no such file"), std::string::npos) << said;
}

TEST(Train, Divergence_is_a_failure) {
  Job wild = job();
  wild.overrides = {"optimizer.lr=900"};
  EXPECT_NE(refusal({}, wild, linear_objective).find("training diverged"), std::string::npos);
}

TEST(Train, Refuses_misfits_by_name) {
  const auto with = [](const std::string& override) {
    Job made = job();
    made.overrides = {override};
    return refusal({}, made, linear_objective);
  };
  EXPECT_NE(refusal({}, job(), {}).find("found no objective"), std::string::npos);
  EXPECT_NE(refusal({}, job(), [] { return Objective{}; }).find("found 0 parameters"), std::string::npos);
  EXPECT_NE(refusal({}, job("no-such"), linear_objective).find("no-such"), std::string::npos);
  EXPECT_NE(refusal({}, job("gpipe"), linear_objective).find("data-parallel"), std::string::npos);
  EXPECT_NE(with("batch.globel=3").find("globel"), std::string::npos);
  EXPECT_NE(with("cluster.server.count=2").find("only server"), std::string::npos);
  EXPECT_NE(with("cluster.fault=[{at=1, kind=\"kill\", node=\"slow\"}]").find("workers of a program are threads"), std::string::npos);
  EXPECT_NE(refusal({.listen = "127.0.0.1:0", .token = "short"}, job(), linear_objective).find("found a secret of 5 bytes"),
            std::string::npos);
  EXPECT_NE(refusal({.listen = "127.0.0.1:0"}, job(), linear_objective).find("found no token"), std::string::npos);
}

}  // namespace
}  // namespace motley::library
