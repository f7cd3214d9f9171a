// A small cluster of real processes, started by the program's commands, and helpers that read its run folder.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "independent_safetensors.h"
#include "real_process.h"
#include "real_trace.h"
#include "store/layout.h"  // links the room that Boost.JSON is compiled in

namespace real {

namespace json = boost::json;

/// Two fast workers and a slow one, all emulated, on synthetic data.
inline constexpr std::uint64_t epoch_samples = 2048;
inline constexpr const char* small_job = R"(
[job]
max_epochs = 4
evaluate_every = 0.5
[model]
kind = "mlp"
hidden = [32]
[data]
kind = "synthetic"
samples = 2048
[optimizer]
lr = 0.05
momentum = 0.9
[batch]
global = 64
[strategy]
kind = "bsp"
[cluster]
deadline_s = 60  # processes may be delayed for seconds on a busy machine
[[cluster.node]]
name = "a"
samples_per_second = 20000
[[cluster.node]]
name = "b"
samples_per_second = 20000
[[cluster.node]]
name = "c"
samples_per_second = 10000
)";

/// Slow enough to be disturbed: 8192 samples take the three workers at least 5 s.
inline std::vector<std::string> slow_devices() {
  return {"--set", "cluster.node.a.samples_per_second=700", "--set", "cluster.node.b.samples_per_second=700",
          "--set", "cluster.node.c.samples_per_second=350"};
}

/// The metrics of a run written so far.
inline std::vector<json::object> metrics_of(const fs::path& run) {
  std::vector<json::object> lines;
  const std::string text = text_of(run / "metrics.jsonl");
  for (std::size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
    lines.push_back(json::parse(text.substr(at, end - at)).as_object());
  return lines;
}

/// The current members by node, and those that left with the reason, according to the metrics.
struct Members {
  std::map<std::string, std::uint32_t> in;
  std::vector<std::pair<std::uint32_t, std::string>> left;
  std::uint64_t evaluations = 0;
};
inline Members members_of(const fs::path& run) {
  Members members;
  for (const json::object& line : metrics_of(run)) {
    const json::string& kind = line.at("kind").as_string();
    if (kind == "evaluated") ++members.evaluations;
    if (kind == "joined") members.in[std::string(line.at("node").as_string())] = line.at("worker").to_number<std::uint32_t>();
    if (kind != "left") continue;
    const auto worker = line.at("worker").to_number<std::uint32_t>();
    members.left.emplace_back(worker, std::string(line.at("reason").as_string()));
    for (auto it = members.in.begin(); it != members.in.end();) it = it->second == worker ? members.in.erase(it) : std::next(it);
  }
  return members;
}

class RealCluster : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    std::replace(name.begin(), name.end(), '/', '-');
    folder_ = fs::path(testing::TempDir()) / ("motley-real-" + std::to_string(getpid()) + "-" + name);
    fs::create_directories(folder_);
    write("job.toml", small_job);
    Program doctor = motley({"doctor", "--json"}, "doctor");
    doctor.wait();
    if (!json::parse(doctor.out()).at("torch").as_bool()) GTEST_SKIP() << "built without torch: a real cluster cannot train";
  }
  void TearDown() override {
    if (!HasFailure()) fs::remove_all(folder_);
  }

  fs::path write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }

  Program motley(std::vector<std::string> words, const std::string& name,
                 const std::vector<std::pair<std::string, std::string>>& environment = {}) {
    words.insert(words.begin(), MOTLEY_BINARY);
    return Program(std::move(words), folder_, name, environment);
  }
  /// `motley train job.toml --out NAME --json` with further arguments.
  Program train(const std::string& name, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{"train", "job.toml", "--out", name, "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return motley(std::move(words), name);
  }

  struct Ran {
    int code = -1;
    std::string out, err;
  };
  /// Runs it to the end.
  Ran run(const std::vector<std::string>& words, const std::string& name = "run") {
    Program program = motley(words, name);
    const End end = program.wait();
    return {end.code.value_or(-1), program.out(), program.err()};
  }

  /// Waits until training has made `evaluations` evaluations.
  void await_evaluations(Program& program, const std::string& run, std::uint64_t evaluations) {
    EXPECT_TRUE(wait_until([&] { return !program.alive() || members_of(folder_ / run).evaluations >= evaluations; }));
    EXPECT_TRUE(program.alive()) << "it ended before it could be disturbed\n" << program.err();
  }

  void expect_good_end(Program& program) {
    const End end = program.wait();
    EXPECT_EQ(end.code, 0) << (end.signal ? "signal " + std::to_string(*end.signal) : "exit code")
                           << (!end.code && !end.signal ? ": it hung" : "") << "\n"
                           << program.err();
  }
  [[nodiscard]] Trace trace(const std::string& run) const { return read_trace_file(folder_ / run / "trace.bin"); }
  void expect_exact_ledger(const std::string& run, double epochs = 4) const {
    const auto faults = ledger_faults(trace(run), epoch_samples, static_cast<std::uint64_t>(epochs * epoch_samples));
    EXPECT_TRUE(faults.empty()) << run << ": " << faults.size() << " faults, the first: " << faults.front();
  }
  [[nodiscard]] std::string model(const std::string& run) const { return text_of(folder_ / run / "model.safetensors"); }

  fs::path folder_;
};

}  // namespace real
