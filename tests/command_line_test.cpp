// The command line as scripts use it: exit codes, JSON keys on stdout and nothing else there, the same job and seed giving the same trace.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/json/parse.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "learn/learner.h"
#include "run_keys.h"

namespace motley::cli {
namespace {

struct Ran {
  int code = -1;
  std::string out;
  std::string err;
};

class CommandLine : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / ("motley-cli-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    job_ = write("job.toml", R"(
[job]
max_epochs = 2
evaluate_every = 0.5
[model]
kind = "none"
values = 20000
[data]
samples = 640
[batch]
global = 64
[[cluster.node]]
name = "fast"
count = 2
samples_per_second = 1000
overhead_s = 0.002
jitter = 0.1
[[cluster.node]]
name = "slow"
samples_per_second = 250
)");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }

  /// `before`: shell commands that run first.
  Ran motley(const std::string& arguments, const std::string& before = "true") {
    const std::string err_file = (folder_ / "stderr").string();
    const std::string command =
        "cd '" + folder_.string() + "' && " + before + " && '" MOTLEY_BINARY "' " + arguments + " 2>'" + err_file + "'";
    Ran ran;
    FILE* pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) return ran;
    std::array<char, 4096> block{};
    while (const std::size_t n = std::fread(block.data(), 1, block.size(), pipe)) ran.out.append(block.data(), n);
    const int status = pclose(pipe);
    ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    std::ifstream err(err_file);
    ran.err.assign(std::istreambuf_iterator<char>(err), {});
    return ran;
  }

  std::filesystem::path folder_;
  std::string job_;
};

TEST_F(CommandLine, Simulate_prints_one_object_with_every_key) {
  const Ran ran = motley("simulate job.toml --strategy ssp --json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto object = boost::json::parse(ran.out).as_object();
  for (const std::string_view key : run_keys) EXPECT_TRUE(object.contains(key)) << key;
  EXPECT_EQ(object.at("samples").to_number<int>(), 1280);
  EXPECT_EQ(object.at("epochs").to_number<int>(), 2);
}

TEST_F(CommandLine, Doc_prints_the_committed_pages) {
  for (const std::string page : {"job", "wire"}) {
    const Ran ran = motley("doc " + page);
    ASSERT_EQ(ran.code, ExitCode::done) << ran.err;
    std::ifstream file(MOTLEY_SOURCE_DIR "/docs/" + page + ".md");
    EXPECT_EQ(ran.out, std::string(std::istreambuf_iterator<char>(file), {})) << "build/motley doc " << page << " > docs/" << page << ".md";
  }
}

TEST_F(CommandLine, Old_commands_are_refused_with_their_new_name) {
  const std::vector<std::pair<std::string, std::string>> renamed{{"serve", "chief"}, {"hold", "server"}, {"work", "worker"}};
  for (const auto& [before, now] : renamed) {
    const Ran ran = motley(before + " job.toml --listen unix:x");
    EXPECT_EQ(ran.code, ExitCode::bad_input);
    EXPECT_NE(ran.err.find(before + " is now called " + now), std::string::npos) << ran.err;
  }
}

TEST_F(CommandLine, Step_has_no_more_samples_than_memory_holds) {
  const std::string memory =
      " --set model.activation_bytes_per_sample=1000 --set cluster.node.fast.memory=330000";  // 4 x 80,000 and 10,000
  for (const char* strategy : {"bsp", "lb-bsp", "asp"}) {
    const Ran ran = motley("simulate job.toml --json --set batch.global=60 --strategy " + std::string(strategy) + memory);
    ASSERT_EQ(ran.code, ExitCode::done) << ran.err;
    const auto workers = boost::json::parse(ran.out).at("per_worker").as_array();
    for (const int fast : {0, 1}) EXPECT_LE(workers.at(fast).at("mean_batch").as_double(), 10) << strategy;
    EXPECT_GT(workers.at(2).at("mean_batch").as_double(), 20)
        << strategy << ": the slow worker takes the samples that do not fit elsewhere";
  }
}

TEST_F(CommandLine, Node_that_cannot_hold_one_sample_is_bad_input) {
  const Ran ran = motley("simulate job.toml --json --set cluster.node.slow.memory=320999 --set model.activation_bytes_per_sample=1000");
  EXPECT_EQ(ran.code, ExitCode::bad_input);
  EXPECT_NE(ran.err.find("job.toml: cluster.node.memory: found 320999 bytes on node \"slow\", expected at least 321000"), std::string::npos)
      << ran.err;
}

TEST_F(CommandLine, Trace_depends_on_the_seed_only) {
  const auto sha = [&](const std::string& seed) {
    return std::string(
        boost::json::parse(motley("simulate job.toml --strategy asp --json --seed " + seed).out).at("trace_sha256").as_string());
  };
  const std::string first = sha("7");
  EXPECT_EQ(first, sha("7"));
  EXPECT_NE(first, sha("8"));
}

TEST_F(CommandLine, Compare_prints_a_row_per_strategy_and_a_report) {
  const Ran ran = motley("compare job.toml --strategies bsp,lb-bsp,local-sgd:steps=4 --seeds 10..11 --json --out report");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto rows = boost::json::parse(ran.out).at("rows").as_array();
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[2].at("strategy").as_string(), "local-sgd:steps=4");
  for (const char* key : {"time_to_target_s", "time_to_target_per_seed", "final_accuracy_mean", "final_accuracy_std", "samples_per_second",
                          "bytes_total", "wait_share", "overlap_ratio", "speedup_vs_bsp", "speedup_vs_lb_bsp"})
    EXPECT_TRUE(rows[0].as_object().contains(key)) << key;
  EXPECT_TRUE(std::filesystem::exists(folder_ / "report" / "report.html"));
}

TEST_F(CommandLine, Bad_arguments_and_jobs_exit_with_2_and_a_reason) {
  EXPECT_EQ(motley("").code, ExitCode::bad_input);
  EXPECT_EQ(motley("frobnicate").code, 2);
  EXPECT_EQ(motley("simulate no-such-file.toml").code, 2);
  EXPECT_EQ(motley("compare job.toml --strategies bsp,bps").code, 2);
  const Ran unknown = motley("simulate job.toml --set cluster.node.fast.samples_per_secnod=3");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("samples_per_second"), std::string::npos) << unknown.err;
  EXPECT_TRUE(unknown.out.empty());
}

TEST_F(CommandLine, Cluster_that_dies_exits_with_3) {
  write("dead.toml", R"(
[model]
kind = "none"
values = 1000
[data]
samples = 100000
[[cluster.node]]
name = "only"
samples_per_second = 100
[[cluster.fault]]
at = 1.0
kind = "kill"
node = "only"
)");
  const Ran ran = motley("simulate dead.toml");
  EXPECT_EQ(ran.code, ExitCode::cluster_failed) << ran.out << ran.err;
  const Ran compared = motley("compare dead.toml --strategies bsp --seeds 1 --out dead");
  EXPECT_EQ(compared.code, ExitCode::cluster_failed);
  EXPECT_NE(compared.err.find("no worker was left"), std::string::npos) << compared.err;
}

TEST_F(CommandLine, Missed_required_target_exits_with_4) {
  if (!learn::available()) GTEST_SKIP() << "built without torch";
  write("hard.toml", R"(
[job]
max_epochs = 1
target_accuracy = 0.999
[data]
kind = "synthetic"
samples = 256
[model]
kind = "mlp"
hidden = [8]
[batch]
global = 32
[[cluster.node]]
name = "only"
samples_per_second = 100
)");
  EXPECT_EQ(motley("simulate hard.toml --require-target").code, ExitCode::target_missed);
  EXPECT_EQ(motley("simulate hard.toml").code, 0);
}

TEST_F(CommandLine, Failure_of_torch_exits_with_3) {
  if (!learn::available()) GTEST_SKIP() << "built without torch";
  write("huge.toml", R"(
[data]
kind = "synthetic"
samples = 65536
features = 1
[model]
kind = "mlp"
hidden = [65536]
[batch]
global = 65536
[[cluster.node]]
name = "only"
samples_per_second = 100
)");
  const std::string eight_gigabytes = "ulimit -v 8000000";  // the activations would take twice as much, and their gradients as much again
  for (const char* command : {"simulate huge.toml", "compare huge.toml --strategies bsp --seeds 1 --out out"}) {
    const Ran ran = motley(command, eight_gigabytes);
    EXPECT_EQ(ran.code, ExitCode::cluster_failed) << command << ": " << ran.err;
    EXPECT_NE(ran.err.find("torch says: "), std::string::npos) << ran.err;
  }
}

TEST_F(CommandLine, Compare_without_a_target_has_no_time_to_target) {
  const Ran ran = motley("compare job.toml --strategies bsp,asp --seeds 1 --out out");
  ASSERT_EQ(ran.code, ExitCode::done) << ran.err;
  EXPECT_EQ(ran.out.find("time to 0"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("time to target"), std::string::npos) << ran.out;
  EXPECT_EQ(ran.out.find("not reached"), std::string::npos) << ran.out;
}

TEST_F(CommandLine, Trace_file_has_complete_records) {
  ASSERT_EQ(motley("simulate job.toml --trace t.bin").code, 0);
  const auto size = std::filesystem::file_size(folder_ / "t.bin");
  constexpr std::uintmax_t header = 16;
  constexpr std::uintmax_t record = 56;
  EXPECT_GT(size, header);
  EXPECT_EQ((size - header) % record, 0U);
}

TEST_F(CommandLine, Bench_mixed_compares_strategies_with_the_sum_of_parts) {
  if (!learn::available()) GTEST_SKIP() << "built without torch";
  const Ran ran = motley(
      "bench mixed --emulated --partitions 80,40 --model mlp --precision fp32 --strategies bsp,lb-bsp --global 12 --seconds 1 --json "
      "--set 'model.hidden=[4]' --out kept");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto object = boost::json::parse(ran.out).as_object();
  EXPECT_EQ(object.at("sum_of_parts").to_number<double>(), 120);
  const auto& rows = object.at("strategies").as_array();
  ASSERT_EQ(rows.size(), 2U);
  for (const auto& row : rows) {
    EXPECT_GT(row.at("samples_per_second").to_number<double>(), 0);
    EXPECT_DOUBLE_EQ(row.at("ratio").to_number<double>(), row.at("samples_per_second").to_number<double>() / 120);
    EXPECT_TRUE(row.as_object().contains("exposed_comm_share"));
  }
  for (const char* strategy : {"bsp", "lb-bsp"})
    EXPECT_TRUE(std::filesystem::exists(folder_ / "kept" / strategy / "trace.bin")) << strategy;
  EXPECT_EQ(motley("bench mixed --partitions 0,40").code, 2);
  const Ran again = motley("bench mixed --emulated --out kept");
  EXPECT_EQ(again.code, 2);
  EXPECT_NE(again.err.find("found a folder that is not empty"), std::string::npos) << again.err;
  EXPECT_EQ(motley("bench mixed --emulated --strategies hps,hps --out twice").code, 2);
}

TEST_F(CommandLine, Doctor_prints_JSON) {
  const Ran ran = motley("doctor --json");
  ASSERT_EQ(ran.code, 0);
  EXPECT_TRUE(boost::json::parse(ran.out).as_object().contains("ok"));
}

}  // namespace
}  // namespace motley::cli
