// A real run without disturbances: its output and folder, that its bits depend on the seed only, and that an interruption does not change
// them.
#include "real_cluster.h"

#include <cmath>

#include "run_keys.h"

namespace real {
namespace {

TEST_F(RealCluster, Train_prints_one_object_with_every_key) {
  Program program = train("run");
  expect_good_end(program);
  const json::object result = json::parse(program.out()).as_object();
  for (const std::string_view key : motley::run_keys) EXPECT_TRUE(result.contains(key)) << key;
  for (const char* key : {"peak_rss_bytes", "run"}) EXPECT_TRUE(result.contains(key)) << key;
  for (const char* key : {"mean", "max", "histogram"}) EXPECT_TRUE(result.at("staleness").as_object().contains(key)) << key;
  EXPECT_EQ(result.at("workers").to_number<int>(), 3);
  EXPECT_EQ(result.at("epochs").to_number<int>(), 4);
  EXPECT_EQ(result.at("samples").to_number<std::uint64_t>(), 4 * epoch_samples);
  EXPECT_EQ(result.at("updates").to_number<std::uint64_t>(), 4 * epoch_samples / 64);
  EXPECT_EQ(result.at("run").as_string(), "run");
  for (const char* process : {"chief", "a", "b", "c"})
    EXPECT_GT(result.at("peak_rss_bytes").at(process).to_number<std::uint64_t>(), 1U << 20U) << process;
  std::uint64_t samples = 0;
  for (const json::value& worker : result.at("per_worker").as_array()) samples += worker.at("samples").to_number<std::uint64_t>();
  EXPECT_EQ(samples, 4 * epoch_samples);
}

TEST_F(RealCluster, Run_folder_is_complete) {
  Program program = train("run");
  expect_good_end(program);
  const fs::path run = folder_ / "run";

  EXPECT_NE(text_of(run / "job.toml").find("synthetic"), std::string::npos);
  std::set<std::string> kinds;
  for (const json::object& line : metrics_of(run)) kinds.insert(std::string(line.at("kind").as_string()));
  EXPECT_EQ(kinds, (std::set<std::string>{"joined", "evaluated", "workers", "finished"}));
  EXPECT_EQ(members_of(run).evaluations, 8U);

  expect_exact_ledger("run");
  const std::vector<Record> records = trace("run").records;
  ASSERT_FALSE(records.empty());
  EXPECT_EQ(std::count_if(records.begin(), records.end(), [](const Record& r) { return r.kind == EventKind::finished; }), 1);

  const json::value chrome = json::parse(text_of(run / "trace.json"));
  EXPECT_GT(chrome.as_array().size(), 100U);
  const json::object result = json::parse(text_of(run / "result.json")).as_object();
  EXPECT_EQ(result.at("trace_sha256"), json::parse(program.out()).at("trace_sha256"));
  Program hash({"/usr/bin/sha256sum", "run/trace.bin"}, folder_, "hash");
  expect_good_end(hash);
  EXPECT_EQ(hash.out().substr(0, 64), std::string(result.at("trace_sha256").as_string()));
  EXPECT_NE(text_of(run / "report.html").find("</html>"), std::string::npos);
  bool board = false;
  for (const auto& entry : fs::directory_iterator(run))
    board = board || (entry.path().filename().string().find("tfevents") != std::string::npos && entry.file_size() > 0);
  EXPECT_TRUE(board) << "no file for TensorBoard";
}

TEST_F(RealCluster, Model_is_readable_by_an_independent_reader) {
  Program program = train("run");
  expect_good_end(program);
  const independent::Safetensors model = independent::read_safetensors(folder_ / "run" / "model.safetensors");
  // Synthetic data has 16 features and 4 classes; the hidden layer has 32 units.
  std::map<std::vector<std::uint64_t>, int> shapes;
  std::size_t values = 0;
  for (const auto& [name, tensor] : model.tensors) {
    EXPECT_FALSE(name.empty());
    ++shapes[tensor.shape];
    values += tensor.values.size();
    EXPECT_TRUE(std::all_of(tensor.values.begin(), tensor.values.end(), [](float x) { return std::isfinite(x); })) << name;
    EXPECT_TRUE(std::any_of(tensor.values.begin(), tensor.values.end(), [](float x) { return x != 0; })) << name;
  }
  EXPECT_EQ(shapes, (std::map<std::vector<std::uint64_t>, int>{{{32, 16}, 1}, {{32}, 1}, {{4, 32}, 1}, {{4}, 1}}));
  EXPECT_EQ(values, 32U * 16 + 32 + 4 * 32 + 4);
}

TEST_F(RealCluster, Replay_repeats_all_decisions) {
  for (const char* strategy : {"bsp", "lb-bsp", "asp", "dssp", "local-sgd", "hps", "multistep"}) {
    Program program = train(strategy, {"--strategy", strategy, "--set", "job.max_epochs=1"});
    expect_good_end(program);
    const Ran replayed = run({"replay", strategy, "--json"});
    EXPECT_EQ(replayed.code, 0) << strategy << ": " << replayed.err;
    EXPECT_TRUE(json::parse(replayed.out).at("identical").as_bool());
    const Ran reported = run({"replay", strategy});
    EXPECT_NE(reported.out.find("identical"), std::string::npos) << reported.out;
  }
}

// Encoded slices are differences to earlier ones, while the forward pass begins with the first of them.
TEST_F(RealCluster, Few_bits_and_overlap_lose_no_worker_and_no_sample) {
  int number = 0;
  for (const char* strategy : {"hps:bits=8/8:overlap=0", "hps:bits=4/8:overlap=1", "hps", "asp:bits=8/8", "multistep:steps=4"}) {
    const std::string name = "run" + std::to_string(number++);
    Program program = train(name, {"--strategy", strategy, "--set", "wire.slice=\"1KiB\""});
    expect_good_end(program);
    expect_exact_ledger(name);
    for (const Record& record : trace(name).records) EXPECT_NE(record.kind, EventKind::left) << strategy;
    EXPECT_GT(json::parse(program.out()).at("final_accuracy").to_number<double>(), 0.5) << strategy;
  }
}

TEST_F(RealCluster, Replay_finds_a_changed_decision) {
  Program program = train("run", {"--set", "job.max_epochs=1"});
  expect_good_end(program);
  std::string inputs = text_of(folder_ / "run" / "inputs.0.bin");
  constexpr std::size_t closed = 9;                    // the record that ends a recording
  char& answers = inputs[inputs.size() - closed - 1];  // of the record before it
  answers = static_cast<char>(answers ^ 1);
  write("run/inputs.0.bin", inputs);
  const Ran replayed = run({"replay", "run"});
  EXPECT_EQ(replayed.code, 3) << replayed.out;
  EXPECT_NE(replayed.err.find("differ"), std::string::npos) << replayed.err;
}

TEST_F(RealCluster, Model_depends_on_the_seed_only) {
  for (const auto& [name, seed] : {std::pair("first", "7"), std::pair("second", "7"), std::pair("third", "8")}) {
    Program program = train(name, {"--seed", seed});
    expect_good_end(program);
  }
  ASSERT_FALSE(model("first").empty());
  EXPECT_TRUE(model("first") == model("second"));
  EXPECT_FALSE(model("first") == model("third"));
}

TEST_F(RealCluster, Real_cluster_and_simulator_learn_the_same) {
  Program program = train("run", {"--seed", "3"});
  expect_good_end(program);
  const Ran simulated = run({"simulate", "job.toml", "--seed", "3", "--json"}, "simulated");
  ASSERT_EQ(simulated.code, 0) << simulated.err;
  const json::object real_result = json::parse(program.out()).as_object(), virtual_result = json::parse(simulated.out).as_object();
  // The simulator writes no model; its accuracy over every test sample is compared instead.
  for (const char* key : {"updates", "samples", "final_accuracy", "best_accuracy", "final_loss"})
    EXPECT_EQ(real_result.at(key), virtual_result.at(key)) << key;
}

TEST_F(RealCluster, Several_servers_learn_the_same_as_one) {
  for (const auto& [name, servers] : {std::pair("one", "1"), std::pair("two", "2"), std::pair("three", "3")}) {
    Program program = train(name, {"--set", "wire.slice=\"512B\"", "--set", "cluster.server.count=" + std::string(servers)});
    expect_good_end(program);
    expect_exact_ledger(name);
    EXPECT_TRUE(model(name) == model("one")) << name;
    EXPECT_EQ(run({"replay", name}).code, 0) << name;
    const json::value here = json::parse(program.out()), one = json::parse(text_of(folder_ / "one.out"));
    for (const char* key : {"bytes_pushed", "bytes_pulled"}) EXPECT_EQ(here.at(key), one.at(key)) << name << ": " << key;
  }
}

// The chief measures the distance of each server, and all processes agree on the placement of slices.
TEST_F(RealCluster, Slices_on_the_nearest_servers_do_not_change_the_model) {
  Program one = train("one", {"--set", "wire.slice=\"512B\""});
  expect_good_end(one);
  Program far =
      train("far", {"--set", "wire.slice=\"512B\"", "--set", "cluster.server.count=3", "--set", "cluster.server.distances_s=[0, 0.02, 0]"});
  expect_good_end(far);
  expect_exact_ledger("far");
  EXPECT_TRUE(model("far") == model("one"));
  EXPECT_NE(far.err().find("slices are placed by distance"), std::string::npos) << far.err();
}

TEST_F(RealCluster, Resumed_run_gives_the_same_bits) {
  Program whole = train("whole");  // the speed of devices does not change the model of bsp
  expect_good_end(whole);
  Program stopped = train("parts", slow_devices());
  await_evaluations(stopped, "parts", 2);
  stopped.signal(SIGINT);
  EXPECT_EQ(stopped.wait().code, 5) << stopped.err();
  EXPECT_EQ(json::parse(stopped.out()).at("ended").as_string(), "interrupted");
  const auto first_part = json::parse(stopped.out()).at("updates").to_number<std::uint64_t>();
  EXPECT_LT(first_part, 128U);

  Program resumed = motley({"train", "parts", "--resume", "--json"}, "resumed");
  expect_good_end(resumed);
  EXPECT_NE(resumed.err().find("version " + std::to_string(first_part)), std::string::npos) << resumed.err();
  EXPECT_EQ(json::parse(resumed.out()).at("updates").to_number<std::uint64_t>(), 128U);
  EXPECT_TRUE(model("whole") == model("parts"));
  expect_exact_ledger("parts");
  EXPECT_EQ(run({"replay", "parts"}).code, 0);
}

}  // namespace
}  // namespace real
