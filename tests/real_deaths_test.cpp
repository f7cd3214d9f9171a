// Real processes that die, freeze, leave and rejoin. The survivors continue, and every sample counts exactly once.
#include <random>

#include "real_cluster.h"

namespace real {
namespace {

using Words = std::vector<std::string>;

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

class RealDeaths : public RealCluster {
 protected:
  [[nodiscard]] Members members() const { return members_of(folder_ / "run"); }
  [[nodiscard]] bool has_left(std::uint32_t worker) const {
    const auto left = members().left;
    return std::any_of(left.begin(), left.end(), [&](const auto& gone) { return gone.first == worker; });
  }
  /// Waits until `holds` or the program has ended; the latter is a failure.
  template <class Condition>
  bool await(Program& program, Condition holds) {
    const bool held = wait_until([&] { return !program.alive() || holds(); }) && program.alive();
    EXPECT_TRUE(held) << "training ended, or hung, before it could be disturbed\n" << program.err();
    return held;
  }
};

/// All kinds of gates: barrier, none, bound, rounds, overlapping rounds.
class RealDeathsUnderEachStrategy : public RealDeaths, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Strategies, RealDeathsUnderEachStrategy, testing::Values("bsp", "lb-bsp", "asp", "ssp", "local-sgd", "multistep"),
                         [](const auto& strategy) {
                           std::string name = strategy.param;
                           name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
                           return name;
                         });

TEST_P(RealDeathsUnderEachStrategy, Killed_workers_are_replaced_and_samples_count_once) {
  const std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  Program program = train("run", slow_devices() + Words{"--strategy", GetParam(), "--respawn"});
  std::vector<std::uint32_t> killed;
  while (killed.size() < 3) {
    Members now;
    if (!await(program, [&] { return (now = members()).in.size() >= 2; })) return;
    const auto victim = std::next(now.in.begin(), static_cast<std::ptrdiff_t>(random() % now.in.size()));
    kill(workers_of(program).at(victim->first), SIGKILL);
    killed.push_back(victim->second);
    if (!await(program, [&] { return has_left(victim->second); })) return;
  }
  expect_good_end(program);
  expect_exact_ledger("run");
  EXPECT_EQ(json::parse(program.out()).at("deaths").to_number<std::size_t>(), killed.size());

  // A worker that was not killed was never lost, so it kept its id; ids are never reused.
  std::vector<std::uint32_t> left, joined;
  for (const Record& record : trace("run").records) {
    if (record.kind == EventKind::joined) joined.push_back(record.worker);
    if (record.kind != EventKind::left) continue;
    left.push_back(record.worker);
    EXPECT_EQ(record.why, static_cast<int>(WhyLeft::connection_lost)) << record.worker;
  }
  EXPECT_EQ(left, killed);
  EXPECT_EQ(std::set<std::uint32_t>(joined.begin(), joined.end()).size(), joined.size());
  EXPECT_GE(joined.size(), 4U) << "a worker rejoined";
}

class RealFreezes : public RealDeaths, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Strategies, RealFreezes, testing::Values("bsp", "asp"),
                         [](const auto& strategy) { return std::string(strategy.param); });

TEST_P(RealFreezes, Frozen_worker_is_fenced_and_rejoins_under_a_new_id) {
  Program program =
      train("run", slow_devices() + Words{"--strategy", GetParam(), "--set", "cluster.heartbeat_s=0.1", "--set", "cluster.deadline_s=0.4"});
  Members now;
  if (!await(program, [&] { return (now = members()).evaluations >= 1 && now.in.contains("b"); })) return;
  const std::uint32_t before = now.in.at("b");
  const pid_t frozen = workers_of(program).at("b");
  kill(frozen, SIGSTOP);
  const bool fenced = await(program, [&] { return has_left(before); });
  kill(frozen, SIGCONT);
  if (!fenced || !await(program, [&] { return (now = members()).in.contains("b"); })) return;
  EXPECT_NE(now.in.at("b"), before);
  EXPECT_EQ(workers_of(program)["b"], frozen) << "it is the same process";
  expect_good_end(program);
  expect_exact_ledger("run");
  for (const auto& [worker, reason] : members().left) {
    EXPECT_EQ(reason, "silent_too_long") << "worker " << worker;  // on a busy machine others may be fenced too
  }
}

// The chief ------------------------------------------------------------------------------------------------------------------------------

TEST_F(RealDeaths, Killed_chief_resumes_and_its_workers_reconnect) {
  Program whole = train("whole");
  expect_good_end(whole);
  Program program = train("run", slow_devices() + Words{"--respawn", "--checkpoint-every", "10"});
  if (!await(program, [&] { return fs::exists(folder_ / "run/checkpoints/latest") && members().evaluations >= 2; })) return;
  const auto workers = workers_of(program);
  kill(chief_of(program).value(), SIGKILL);
  if (!await(program, [&] { return program.err().find("going on from") != std::string::npos; })) return;
  EXPECT_EQ(workers_of(program), workers) << "no worker was restarted";
  expect_good_end(program);

  const std::string reported = program.err();
  EXPECT_NE(reported.find("the chief died: killed by signal 9"), std::string::npos) << reported;
  EXPECT_NE(reported.find(".safetensors: version "), std::string::npos) << reported;
  EXPECT_TRUE(model("run") == model("whole")) << "repeated updates gave a different model";
  EXPECT_EQ(json::parse(program.out()).at("deaths").to_number<int>(), 0) << reported;
  expect_exact_ledger("run");
  EXPECT_EQ(run({"replay", "run"}, "replay").code, 0);
}

TEST_F(RealDeaths, Chief_killed_twice_resumes_from_the_same_checkpoint) {
  Program whole = train("whole");
  expect_good_end(whole);
  Program program = train("run", slow_devices() + Words{"--respawn", "--checkpoint-every", "30"});
  const auto times_joined = [&] {
    const auto lines = metrics_of(folder_ / "run");
    return std::count_if(lines.begin(), lines.end(), [](const json::object& line) { return line.at("kind").as_string() == "joined"; });
  };
  if (!await(program, [&] { return fs::exists(folder_ / "run/checkpoints/latest"); })) return;
  for (const int joined : {3, 6}) {
    if (!await(program, [&] { return times_joined() >= joined && chief_of(program); })) return;
    kill(chief_of(program).value(), SIGKILL);
  }
  expect_good_end(program);
  EXPECT_TRUE(model("run") == model("whole"));
  expect_exact_ledger("run");
  EXPECT_EQ(run({"replay", "run"}, "replay").code, 0);
}

TEST_F(RealDeaths, Chief_killed_before_a_checkpoint_starts_over) {
  Program whole = train("whole");
  expect_good_end(whole);
  Program program = train("run", slow_devices() + Words{"--respawn", "--checkpoint-every", "0"});
  if (!await(program, [&] { return members().evaluations >= 1; })) return;
  kill(chief_of(program).value(), SIGKILL);
  expect_good_end(program);
  EXPECT_NE(program.err().find("starting from the beginning"), std::string::npos) << program.err();
  EXPECT_TRUE(model("run") == model("whole"));
}

TEST_F(RealDeaths, Killed_server_is_restarted_from_the_checkpoint) {
  Program whole = train("whole");
  expect_good_end(whole);
  Program program = train("run", slow_devices() + Words{"--respawn", "--checkpoint-every", "10", "--set", "wire.slice=\"512B\"", "--set",
                                                        "cluster.server.count=2"});
  if (!await(program, [&] { return fs::exists(folder_ / "run/checkpoints/latest") && members().evaluations >= 2; })) return;
  kill(server_of(program).value(), SIGKILL);
  expect_good_end(program);
  const std::string reported = program.err();
  EXPECT_NE(reported.find("server-1 on this machine died: killed by signal 9"), std::string::npos) << reported;
  EXPECT_NE(reported.find("going on from"), std::string::npos) << reported;
  EXPECT_TRUE(model("run") == model("whole"));
  expect_exact_ledger("run");
}

TEST_F(RealDeaths, Workers_reconnect_to_a_manually_started_chief) {
  std::string two = small_job;
  two.erase(two.rfind("[[cluster.node]]"));
  write("two.toml", two);
  const Words slow{"--set", "cluster.node.a.samples_per_second=700", "--set", "cluster.node.b.samples_per_second=700"};
  const auto serve = [&](const std::string& listen, const std::string& name, const Words& more) {
    return motley(Words{"chief", "two.toml", "--listen", listen, "--out", "run", "--checkpoint-every", "10"} + slow + more, name);
  };
  Program first = serve("127.0.0.1:0", "first", {});
  const std::string listening = "listening on ";
  ASSERT_TRUE(first.says(", run folder")) << first.err();
  std::string address = first.err();
  address.erase(0, address.find(listening) + listening.size());
  address.erase(address.find(','));
  const auto work = [&](const std::string& node) {
    return motley({"worker", "--join", address, "--node", node, "--token-file", "run/token"}, node);
  };
  ASSERT_TRUE(first.says("run/token")) << first.err();
  Program a = work("a"), b = work("b");
  if (!await(first, [&] { return fs::exists(folder_ / "run/checkpoints/latest") && members().evaluations >= 2; })) return;
  first.signal(SIGKILL);
  EXPECT_EQ(first.wait().signal, SIGKILL);

  Program second = serve(address, "second", {"--resume", "--json"});
  expect_good_end(second);
  EXPECT_NE(second.err().find("going on from"), std::string::npos) << second.err();
  EXPECT_EQ(json::parse(second.out()).at("samples").to_number<std::uint64_t>(), 4 * epoch_samples);
  expect_good_end(a);
  expect_good_end(b);
  EXPECT_NE(a.err().find("trying again"), std::string::npos) << a.err();
  expect_exact_ledger("run");
}

// Messages to the user, and a job's own faults

TEST_F(RealDeaths, Death_is_reported_with_signal_and_last_output) {
  Program program = train("run", slow_devices());
  if (!await(program, [&] { return members().evaluations >= 1; })) return;
  kill(workers_of(program).at("c"), SIGSEGV);
  expect_good_end(program);
  const std::string reported = program.err();
  EXPECT_NE(reported.find("c on this machine died: killed by signal 11 (Segmentation fault); its output is in run/logs/c.log"),
            std::string::npos)
      << reported;
  EXPECT_NE(reported.find("  c | c: preparing data and model"), std::string::npos) << reported;
  EXPECT_EQ(json::parse(program.out()).at("deaths").to_number<int>(), 1);
  expect_exact_ledger("run");
}

TEST_F(RealDeaths, Run_without_workers_exits_with_3_and_a_remedy) {
  Program program = train("run", slow_devices() + Words{"--checkpoint-every", "10"});
  if (!await(program, [&] { return members().evaluations >= 1; })) return;
  for (const auto& [node, pid] : workers_of(program)) kill(pid, SIGKILL);
  const End end = program.wait();
  EXPECT_EQ(end.code, 3) << program.err();
  EXPECT_NE(program.err().find("no worker is left"), std::string::npos) << program.err();
  EXPECT_NE(program.err().find("--resume"), std::string::npos) << program.err();
  Program resumed = motley({"train", "run", "--resume", "--json"}, "resumed");
  expect_good_end(resumed);
  expect_exact_ledger("run");
}

TEST_F(RealDeaths, Faults_of_a_job_are_injected) {
  Program program = train("run", slow_devices() + Words{"--set", "cluster.heartbeat_s=0.1", "--set", "cluster.deadline_s=0.5", "--set",
                                                        R"(cluster.fault=[{at=0.4, kind="kill", node="a"}, {at=0.8, kind="leave", node="b"},
                                      {at=1.2, kind="join", node="a"}, {at=1.6, kind="pause", node="c", for=1.5}])"});
  expect_good_end(program);
  const std::string reported = program.err();
  for (const char* words : {"fault: killing a", "fault: asking b to leave", "fault: starting a", "fault: stopping c for 1.5 s",
                            "a on this machine died: killed by signal 9 (Killed)"})
    EXPECT_NE(reported.find(words), std::string::npos) << words << "\n" << reported;
  EXPECT_EQ(reported.find("b on this machine died"), std::string::npos) << reported;

  std::map<std::string, std::set<std::uint32_t>> ids;  // of each node
  std::map<std::string, std::set<std::string>> reasons;
  std::map<std::uint32_t, std::string> nodes;
  for (const json::object& line : metrics_of(folder_ / "run")) {
    if (line.at("kind").as_string() != "joined" && line.at("kind").as_string() != "left") continue;
    const auto worker = line.at("worker").to_number<std::uint32_t>();
    if (line.at("kind").as_string() == "joined") nodes[worker] = std::string(line.at("node").as_string());
    if (line.at("kind").as_string() == "joined") ids[nodes[worker]].insert(worker);
    if (line.at("kind").as_string() == "left") reasons[nodes[worker]].insert(std::string(line.at("reason").as_string()));
  }
  EXPECT_TRUE(reasons["a"].contains("connection_lost"));
  EXPECT_TRUE(reasons["b"].contains("said_goodbye"));
  EXPECT_TRUE(reasons["c"].contains("silent_too_long"));
  EXPECT_GE(ids["a"].size(), 2U);
  EXPECT_GE(ids["c"].size(), 2U);
  expect_exact_ledger("run");
}

TEST_F(RealDeaths, Node_whose_first_fault_is_a_join_starts_later) {
  Program program = train("run", slow_devices() + Words{"--set", R"(cluster.fault=[{at=0.3, kind="join", node="b"}])"});
  expect_good_end(program);
  std::map<std::string, std::int64_t> joined;
  for (const json::object& line : metrics_of(folder_ / "run"))
    if (line.at("kind").as_string() == "joined")
      joined[std::string(line.at("node").as_string())] = static_cast<std::int64_t>(1e9 * line.at("time_s").to_number<double>());
  ASSERT_EQ(joined.size(), 3U) << program.err();
  EXPECT_GT(joined["b"], joined["a"]);
  EXPECT_GT(joined["b"], joined["c"]);
  expect_exact_ledger("run");
}

}  // namespace
}  // namespace real
