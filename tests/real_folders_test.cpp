// Failures of a run folder: two chiefs, damaged checkpoints, a missing trace, a full disk, a killed launcher. Learned parameters are not
// lost, and missing files are reported.
#include "real_cluster.h"

namespace real {
namespace {

using Words = std::vector<std::string>;

/// One worker, slow enough to be disturbed.
constexpr const char* one_worker = R"(
[job]
max_epochs = 4
evaluate_every = 0.25
[model]
kind = "mlp"
hidden = [32]
[data]
kind = "synthetic"
samples = 2048
[batch]
global = 64
[cluster]
deadline_s = 60
[[cluster.node]]
name = "a"
samples_per_second = 1500
)";

class RealFolders : public RealCluster {
 protected:
  void SetUp() override {
    RealCluster::SetUp();
    write("job.toml", one_worker);
    fs::create_directories(folder_ / "tmp");
  }
  /// The run has its own folder for temporary files.
  Program start(const Words& words, const std::string& name) { return motley(words, name, {{"TMPDIR", (folder_ / "tmp").string()}}); }
  [[nodiscard]] std::size_t temporary_folders() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_ / "tmp"), fs::directory_iterator()));
  }
  [[nodiscard]] std::vector<fs::path> checkpoints() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_ / "run" / "checkpoints"))
      if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
  }
  static void damage(const fs::path& path) {
    std::string bytes = text_of(path);
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
  static void expect_said(const std::string& reported, const Words& all) {
    for (const std::string& words : all)
      EXPECT_NE(reported.find(words), std::string::npos) << "'" << words << "' is missing from:\n" << reported;
  }
  static void expect_code(Program& program, int code) {
    const End end = program.wait();
    EXPECT_EQ(end.code, code) << (end.signal ? "signal " + std::to_string(*end.signal) : "") << program.err();
  }
};

TEST_F(RealFolders, Killed_run_resumes_from_the_newest_valid_checkpoint) {
  Program first = start({"train", "job.toml", "--out", "run", "--checkpoint-every", "5"}, "first");
  await_evaluations(first, "run", 3);
  const std::string launcher = std::to_string(first.pid());
  for (const Words& second : {Words{"train", "run", "--resume"}, Words{"chief", "run/job.toml", "--out", "run", "--resume"}}) {
    const Ran refused = run(second, "second");
    EXPECT_EQ(refused.code, 2) << refused.err;
    expect_said(refused.err, {"in use by process " + launcher});
  }
  const pid_t chief = chief_of(first).value();
  first.signal(SIGKILL);
  first.wait();
  EXPECT_GE(temporary_folders(), 1U);
  ASSERT_TRUE(wait_until([&] { return command_of(chief).empty(); })) << "its chief saves a checkpoint and ends";

  ASSERT_EQ(checkpoints().size(), 2U);
  const std::string older = checkpoints().front().filename(), newer = checkpoints().back().filename();
  damage(checkpoints().back());
  write("run/checkpoints/latest", "");
  Program resumed = start({"train", "run", "--resume"}, "resumed");
  expect_good_end(resumed);
  expect_said(resumed.err(), {newer + " cannot be used: ", "`latest` names none", "going on from run/checkpoints/" + older});
  EXPECT_TRUE(fs::exists(folder_ / "run" / "set-aside.1" / newer));
  expect_exact_ledger("run");
  EXPECT_EQ(temporary_folders(), 0U);

  for (const fs::path& file : checkpoints()) damage(file);
  const std::string before = text_of(checkpoints().back());
  const Ran refused = run({"train", "run", "--resume"}, "refused");
  EXPECT_EQ(refused.code, 2) << refused.err;
  expect_said(refused.err, {"found no checkpoint that this run can continue from", "--from-scratch"});
  EXPECT_EQ(text_of(checkpoints().back()), before);
  Program restarted = start({"train", "run", "--resume", "--from-scratch"}, "restarted");
  expect_good_end(restarted);
  expect_said(restarted.err(), {"2 checkpoints are set aside"});
  EXPECT_EQ(text_of(folder_ / "run" / "set-aside.2" / checkpoints().back().filename()), before);
  expect_exact_ledger("run");
}

TEST_F(RealFolders, Stopped_run_and_missing_trace_are_reported) {
  Program first = start({"train", "job.toml", "--out", "run"}, "first");
  await_evaluations(first, "run", 2);
  first.signal(SIGTERM);
  expect_code(first, 5);
  expect_said(first.err(), {"stopped on request", "continue with: motley train run --resume"});
  fs::remove(folder_ / "run" / "trace.bin");
  Program resumed = start({"train", "run", "--resume"}, "resumed");
  expect_code(resumed, 6);
  expect_said(resumed.err(), {"trace.bin lacks updates before version", "trained to the end, but run is incomplete: trace.bin"});
  EXPECT_TRUE(fs::exists(folder_ / "run" / "model.safetensors"));
}

TEST_F(RealFolders, Full_disk_is_reported_once_and_replay_stops_there) {
  const std::string socket_path = "unix:" + (folder_ / "socket").string();
  Program chief({"/bin/sh", "-c", "ulimit -f 40; exec " MOTLEY_BINARY " chief job.toml --out run --bulk tcp --listen " + socket_path},
                folder_,
                "chief");  // 20 KiB per file
  ASSERT_TRUE(wait_until([&] { return !chief.alive() || fs::exists(folder_ / "socket"); })) << chief.err();
  const Words join{"worker", "--join", socket_path, "--node", "a", "--bulk", "tcp"};
  Program leaves = start(join, "leaves");
  await_evaluations(chief, "run", 1);
  leaves.signal(SIGTERM);
  expect_code(leaves, 5);
  Program worker = start(join, "worker");
  expect_code(chief, 6);
  expect_code(worker, 0);
  const std::string reported = chief.err();
  expect_said(reported, {"trained to the end, but run is incomplete: inputs.0.bin, ", "trace.bin"});
  for (const char* file : {"trace.bin", "inputs.0.bin"}) {
    const std::string words = std::string(file) + ": cannot be written: File too large";
    expect_said(reported, {words});
    EXPECT_EQ(reported.find(words), reported.rfind(words)) << "told once";
  }
  EXPECT_TRUE(read_trace_file(folder_ / "run" / "trace.bin").faults.empty()) << "complete records up to the end";
  EXPECT_TRUE(fs::exists(folder_ / "run" / "model.safetensors"));
  const Ran replayed = run({"replay", "run"}, "replayed");
  EXPECT_EQ(replayed.code, 0) << replayed.err;
  expect_said(replayed.err, {"the recording ends there because: it ends"});
}

}  // namespace
}  // namespace real
