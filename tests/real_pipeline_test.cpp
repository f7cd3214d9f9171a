// A model cut across real processes learns the same as the simulated one, also after deaths and resumptions.
#include "real_cluster.h"

namespace real {
namespace {

constexpr std::uint64_t mini_batches = 4 * epoch_samples / 64;
constexpr std::uint64_t micro_batches = 4;

constexpr const char* pipeline_job = R"(
[job]
max_epochs = 4
evaluate_every = 0.25
[model]
kind = "mlp"
hidden = [24, 24, 24, 24, 24]
[data]
kind = "synthetic"
samples = 2048
[optimizer]
lr = 0.05
momentum = 0.9
[batch]
global = 64
[strategy]
kind = "gpipe"
micro_batches = 4
[pipeline]
profile = "equal"
[cluster]
deadline_s = 60
[[cluster.node]]
name = "a"
samples_per_second = 2000
[[cluster.node]]
name = "b"
samples_per_second = 2000
[[cluster.node]]
name = "c"
samples_per_second = 1500
)";

std::vector<std::string> operator+(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

class RealPipeline : public RealCluster {
 protected:
  void SetUp() override {
    RealCluster::SetUp();
    write("job.toml", pipeline_job);
  }
  void expect_exact(const std::string& run, std::uint64_t ahead = 0) const {
    const auto faults = pipeline_faults(trace(run), mini_batches, micro_batches, ahead);
    EXPECT_TRUE(faults.empty()) << run << ": " << faults.size() << " faults, the first: " << faults.front();
  }
  [[nodiscard]] static std::uint64_t number(const Program& program, const char* key) {
    return json::parse(program.out()).at(key).to_number<std::uint64_t>();
  }
};

class RealPipelines : public RealPipeline, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Schedules, RealPipelines, testing::Values("gpipe", "1f1b", "adapipe"),
                         [](const auto& schedule) { return "of_" + std::string(schedule.param); });

TEST_P(RealPipelines, Complete_and_keep_the_invariants) {
  const bool runs_ahead = std::string(GetParam()) == "adapipe";
  Program program = train("run", {"--strategy", std::string(GetParam()) + ":micro_batches=4"});
  expect_good_end(program);
  expect_exact("run", runs_ahead ? 1 : 0);
  EXPECT_EQ(number(program, "updates"), mini_batches);
  EXPECT_EQ(number(program, "samples"), 4 * epoch_samples);
  EXPECT_EQ(members_of(folder_ / "run").evaluations, 16U);
  if (runs_ahead) return;  // the model depends on timing
  const Ran simulated = run({"simulate", "job.toml", "--strategy", std::string(GetParam()) + ":micro_batches=4", "--json"}, "simulated");
  ASSERT_EQ(simulated.code, 0) << simulated.err;
  for (const char* key : {"updates", "samples", "final_accuracy", "best_accuracy", "final_loss"})
    EXPECT_EQ(json::parse(program.out()).at(key), json::parse(simulated.out).at(key)) << key;
}

TEST_F(RealPipeline, Killed_stages_do_not_change_the_model) {
  Program whole = train("whole");
  expect_good_end(whole);
  Program program = train("run", {"--respawn"});
  std::uint64_t lives = 3;
  for (const char* victim : {"b", "a", "c"}) {
    // All three have joined, and some of the model is saved.
    const auto here = [&] { return workers_of(program).size() == 3 && members_of(folder_ / "run").evaluations >= lives - 1; };
    ASSERT_TRUE(wait_until([&] { return !program.alive() || here(); })) << program.err();
    ASSERT_TRUE(program.alive()) << "it ended before it could be disturbed\n" << program.err();
    kill(workers_of(program).at(victim), SIGKILL);
    ++lives;
    const std::string lost = "lost " + std::string(victim);
    ASSERT_TRUE(wait_until([&] { return !program.alive() || program.err().find(lost) != std::string::npos; })) << program.err();
  }
  expect_good_end(program);
  expect_exact("run");
  EXPECT_EQ(number(program, "deaths"), 3U);
  EXPECT_TRUE(model("run") == model("whole")) << "after deaths and other cuts";
}

/// With their link, two slow nodes are faster than one of them alone, and slower than the fast one.
TEST_F(RealPipeline, More_stages_take_over_after_deaths_of_any_process) {
  constexpr std::uint64_t samples = 7578;  // 3.7 epochs: 118 mini-batches of 64 and one of 26, which is two micro-batches
  const std::vector<std::string> shape{"--set", "job.max_epochs=3.7",
                                       "--set", "cluster.link={bandwidth=\"140kB/s\", latency_s=0.0001}",
                                       "--set", "cluster.node.b.samples_per_second=1000",
                                       "--set", "cluster.node.c.samples_per_second=1000"};
  Program program = train("run", shape + std::vector<std::string>{"--respawn", "--checkpoint-every", "8"});
  constexpr std::string_view nodes = "abc";
  for (const char* victim : {"a", "b", "the chief", "c"}) {
    const bool chief = victim == std::string("the chief");
    const std::uint64_t kept = members_of(folder_ / "run").evaluations;
    const auto there = [&] {
      const std::string reported = program.err();
      const bool all_came =
          std::all_of(nodes.begin(), nodes.end(), [&](char n) { return reported.find(n + std::string(" is here")) < reported.size(); });
      return all_came && members_of(folder_ / "run").evaluations > kept && (chief || workers_of(program).contains(victim));
    };
    ASSERT_TRUE(wait_until([&] { return !program.alive() || there(); })) << program.err();
    ASSERT_TRUE(program.alive()) << "it ended before it could be disturbed\n" << program.err();
    kill(chief ? chief_of(program).value() : workers_of(program).at(victim), SIGKILL);
    const std::string lost = chief ? "going on from" : "lost " + std::string(victim);
    ASSERT_TRUE(wait_until([&] { return !program.alive() || program.err().find(lost) != std::string::npos; })) << program.err();
  }
  expect_good_end(program);
  const std::string reported = program.err();
  EXPECT_NE(reported.find("training begins: 1 stages"), std::string::npos) << reported;
  EXPECT_NE(reported.find("a stage was lost: 2 stages"), std::string::npos) << reported;
  const auto faults = pipeline_faults(trace("run"), 119, micro_batches, 0, 2);
  EXPECT_TRUE(faults.empty()) << faults.size() << " faults, the first: " << faults.front();
  EXPECT_EQ(number(program, "samples"), samples);
  const Ran simulated = run(std::vector<std::string>{"simulate", "job.toml", "--json"} + shape, "simulated");
  ASSERT_EQ(simulated.code, 0) << simulated.err;
  for (const char* key : {"updates", "samples", "epochs", "final_accuracy", "final_loss"})
    EXPECT_EQ(json::parse(program.out()).at(key), json::parse(simulated.out).at(key)) << key << ", after the deaths";
}

TEST_F(RealPipeline, Resumed_run_may_have_another_number_of_stages) {
  Program whole = train("whole");
  expect_good_end(whole);
  Program stopped = train("parts");
  await_evaluations(stopped, "parts", 3);
  stopped.signal(SIGINT);
  EXPECT_EQ(stopped.wait().code, 5) << stopped.err();
  EXPECT_EQ(json::parse(stopped.out()).at("ended").as_string(), "interrupted");
  EXPECT_LT(number(stopped, "updates"), mini_batches);

  Program resumed = motley({"train", "parts", "--resume", "--json", "--set", "pipeline.stages=2"}, "resumed");
  expect_good_end(resumed);
  EXPECT_NE(resumed.err().find("going on from"), std::string::npos) << resumed.err();
  EXPECT_EQ(number(resumed, "updates"), mini_batches);
  EXPECT_TRUE(model("whole") == model("parts"));
  const Ran other = run({"train", "parts", "--resume", "--set", "optimizer.lr=0.1"}, "other");
  EXPECT_EQ(other.code, 2) << "another schedule is another run";
}

TEST_F(RealPipeline, Unknown_node_names_are_refused_with_a_reason) {
  Program pipeline_chief =
      motley({"chief", "job.toml", "--listen", "unix:" + (folder_ / "socket").string(), "--out", "run"}, "pipeline-chief");
  ASSERT_TRUE(wait_until([&] { return fs::exists(folder_ / "socket"); }));
  const Ran unknown = run({"stage", "--join", "unix:" + (folder_ / "socket").string(), "--node", "nobody", "--listen",
                           "unix:" + (folder_ / "own-socket").string()},
                          "unknown");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("--node nobody: found no such node"), std::string::npos) << unknown.err;
  const Ran worker = run({"worker", "--join", "unix:" + (folder_ / "socket").string(), "--node", "a"}, "worker");
  EXPECT_EQ(worker.code, 2);
  EXPECT_NE(worker.err.find("motley stage"), std::string::npos) << worker.err;
  pipeline_chief.signal(SIGINT);
  pipeline_chief.wait();
}

}  // namespace
}  // namespace real
