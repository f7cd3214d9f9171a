// Access to a real cluster: admission, refusals with their messages, and floods of malicious clients, which change no bit of the model.
#include <cstdlib>
#include <random>

#include "real_cluster.h"
#include "real_raw_client.h"
#include "transport/invalid_memory_for_tests.h"
#include "transport/shared_frame.h"
#include "wire/encode.h"

namespace real {
namespace {

using Words = std::vector<std::string>;

class RealAccess : public RealCluster {
 protected:
  void SetUp() override {
    RealCluster::SetUp();
    std::string two = small_job;
    two.erase(two.rfind("[[cluster.node]]"));
    write("two.toml", two);
    write("token", "a secret of many letters\n");
    write("other-token", "another secret of letters\n");
    write("short-token", "fifteen letters\n");
    write("empty-token", "\n");
  }

  Program serve(const std::string& out, const Words& more = {"--no-token"}) {
    Words words{"chief", "two.toml", "--listen", "127.0.0.1:0", "--out", out, "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return motley(words, out);
  }
  Program work(const std::string& node, std::uint16_t port, const Words& more = {}) {
    Words words{"worker", "--join", "127.0.0.1:" + std::to_string(port), "--node", node};
    words.insert(words.end(), more.begin(), more.end());
    return motley(words, node + "-" + std::to_string(++workers_));
  }
  /// The port of a chief once it listens; 0: it never listened.
  static std::uint16_t port_of(Program& chief) {
    const std::string words = "listening on 127.0.0.1:";
    if (!chief.says(words)) return 0;
    const std::string reported = chief.err();
    return static_cast<std::uint16_t>(std::atoi(reported.c_str() + reported.find(words) + words.size()));
  }
  /// The model of an undisturbed run of the same job.
  std::string quiet_model() {
    Program chief = serve("quiet");
    const std::uint16_t port = port_of(chief);
    Program a = work("a", port), b = work("b", port);
    expect_good_end(chief);
    expect_good_end(a);
    expect_good_end(b);
    return model("quiet");
  }
  /// The command must exit with 2, print each of these sentences on stderr, and nothing on stdout.
  void expect_refused(const Words& words, const std::vector<std::string>& sentences) {
    const Ran ran = run(words);
    std::string command;
    for (const std::string& word : words) command += word + " ";
    EXPECT_EQ(ran.code, 2) << command << "\n" << ran.err;
    EXPECT_EQ(ran.out, "") << command;
    for (const std::string& sentence : sentences) EXPECT_NE(ran.err.find(sentence), std::string::npos) << command << "\n" << ran.err;
  }

 private:
  int workers_ = 0;
};

TEST_F(RealAccess, Listening_to_other_machines_needs_a_token) {
  for (const char* address : {"0.0.0.0:0", "[::]:0"})
    expect_refused({"chief", "two.toml", "--listen", address, "--no-token", "--out", "x"}, {"token"});
  expect_refused({"chief", "two.toml", "--token-file", "no-such-file", "--out", "x"}, {"no-such-file", "found", "expected"});
  expect_refused({"chief", "two.toml", "--token-file", "empty-token", "--out", "x"}, {"empty-token", "found", "expected"});
  expect_refused({"server", "--join", "unix:chief", "--server", "1"}, {"127.0.0.1:0", "token"});
  expect_refused({"stage", "--join", "unix:chief", "--node", "a"}, {"127.0.0.1:0", "token"});
  expect_refused({"chief", "two.toml", "--token-file", "short-token", "--out", "x"},
                 {"short-token", "found a secret of 15 bytes", "expected at least 16", "head -c 32 /dev/urandom | base64 > token"});
  Program named = motley({"worker", "--join", "127.0.0.1:1"}, "named", {{"MOTLEY_TOKEN", "fifteen letters"}});
  EXPECT_EQ(named.wait().code, 2) << named.err();
  EXPECT_NE(named.err().find("MOTLEY_TOKEN"), std::string::npos) << named.err();
}

TEST_F(RealAccess, Worker_with_a_wrong_token_is_refused) {
  const std::string quiet = quiet_model();
  Program chief = serve("run", {"--token-file", "token"});
  const std::uint16_t port = port_of(chief);
  Program a = work("a", port, {"--token-file", "token"});
  Program wrong = work("b", port, {"--token-file", "other-token", "--patience", "0.5"});
  EXPECT_EQ(wrong.wait().code, 2) << wrong.err();
  EXPECT_NE(wrong.err().find("wrong token"), std::string::npos) << wrong.err();
  Program none = work("b", port, {"--patience", "0.5"});
  EXPECT_EQ(none.wait().code, 2) << none.err();
  EXPECT_NE(none.err().find("wrong token"), std::string::npos) << none.err();

  Program right = motley({"worker", "--join", "127.0.0.1:" + std::to_string(port), "--node", "b"}, "right",
                         {{"MOTLEY_TOKEN", "a secret of many letters"}});
  expect_good_end(chief);
  expect_good_end(a);
  expect_good_end(right);
  EXPECT_TRUE(model("run") == quiet);
  EXPECT_EQ(members_of(folder_ / "run").left.size(), 0U);
}

TEST_F(RealAccess, Generated_token_is_readable_by_its_user_only) {
  Program chief = serve("run", {});
  const std::uint16_t port = port_of(chief);
  const fs::path file = folder_ / "run" / "token";
  ASSERT_TRUE(chief.says("--token-file " + file.string())) << chief.err();
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  const std::string secret = text_of(file);
  EXPECT_GE(secret.size(), 64U);
  Program none = work("a", port);
  EXPECT_EQ(none.wait().code, 2) << none.err();
  EXPECT_NE(none.err().find("wrong token"), std::string::npos) << none.err();
  chief.signal(SIGKILL);
  chief.wait();

  Program again = motley({"chief", "two.toml", "--listen", "127.0.0.1:0", "--out", "run", "--resume"}, "again");
  const std::uint16_t next = port_of(again);
  EXPECT_EQ(text_of(file), secret);
  Program a = work("a", next, {"--token-file", file.string()}), b = work("b", next, {"--token-file", file.string()});
  expect_good_end(again);
  expect_good_end(a);
  expect_good_end(b);
  fs::permissions(file, fs::perms::others_read, fs::perm_options::add);
  expect_refused({"chief", "two.toml", "--out", "run", "--resume"}, {"token", "mode 604", "expected"});
}

TEST_F(RealAccess, Invalid_memory_of_a_peer_changes_no_bit) {
  using namespace motley::transport;
  if (!has_segments()) GTEST_SKIP() << "this kernel has no sealed memory";
  const std::string quiet = quiet_model();
  const std::string socket_path = (folder_ / "socket").string();
  Program chief = motley({"chief", "two.toml", "--listen", "unix:" + socket_path, "--out", "run", "--json"}, "run");
  ASSERT_TRUE(chief.says("listening on unix:")) << chief.err();

  constexpr std::size_t ring_bytes = 4 << 20;
  const auto offer = [](const RawClient& bulk, pid_t process, std::size_t bytes, int file) {
    motley::wire::Bytes words;
    motley::wire::Appender to{words};
    to.put(8, 2);
    to.put(static_cast<std::uint64_t>(process), 4);
    to.put(bytes, 4);
    words.push_back(std::byte{1});
    write_raw_with_file(bulk.descriptor(), words, file);
    const std::string answer = bulk.receive_bytes(11);
    return answer.size() == 11 && answer[10] == 1;  // accepted
  };
  std::vector<RawClient> lanes;  // kept open to the end: refusals take a while
  const auto bulk_lane = [&]() -> const RawClient& {
    const auto session = random_bytes<16>();
    for (const int lane : {0, 1}) EXPECT_TRUE(lanes.emplace_back(socket_path).prove(lane, session, ""));
    return lanes.back();
  };
  lanes.reserve(100);
  for (const Invalid& invalid : invalid_memory(ring_bytes)) {
    SCOPED_TRACE(invalid.what);
    const RawClient& left_to_the_stream = bulk_lane();
    EXPECT_FALSE(offer(left_to_the_stream, getpid(), invalid.claimed_bytes, invalid.file.number()));
    EXPECT_TRUE(invalid.what != "a file" || ftruncate(invalid.file.number(), 0) == 0);
    left_to_the_stream.send_bytes(std::string(1'000, 'x'));  // the bytes go to the stream, and are not a slice

    const RawClient& taken = bulk_lane();
    const Descriptor ring = memory_sealed_by(F_SEAL_SHRINK, ring_bytes);
    EXPECT_TRUE(offer(taken, getpid(), ring_bytes, ring.number()));
    motley::wire::Bytes shown;
    append_offered(1, invalid.claimed_bytes, shown);
    write_raw_with_file(taken.descriptor(), shown, invalid.file.number());
  }
  EXPECT_FALSE(offer(bulk_lane(), chief.pid(), ring_bytes, memory_sealed_by(F_SEAL_SHRINK, ring_bytes).number()));
  lanes.back().send_bytes(std::string(1'000, 'x'));
  for (const RawClient& lane : lanes) EXPECT_TRUE(lane.is_refused());

  const auto join = [&](const std::string& node) { return motley({"worker", "--join", "unix:" + socket_path, "--node", node}, node); };
  Program a = join("a"), b = join("b");
  expect_good_end(chief);
  expect_good_end(a);
  expect_good_end(b);
  EXPECT_TRUE(model("run") == quiet);
}

TEST_F(RealAccess, Malicious_clients_change_no_bit) {
  const std::string quiet = quiet_model();
  const std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto noise = [&](std::size_t n) {
    std::string bytes(n, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    return bytes;
  };

  Program chief =
      serve("run", {"--no-token", "--set", "cluster.node.a.samples_per_second=600", "--set", "cluster.node.b.samples_per_second=600"});
  const std::uint16_t port = port_of(chief);
  Program a = work("a", port), b = work("b", port);
  await_evaluations(chief, "run", 1);

  const RawClient silent(port);  // stays open to the end and sends one byte
  silent.send_bytes("M");
  for (const std::size_t bytes : {1U, 38U, 119U, 5000U, 1'000'000U}) {
    const RawClient loud(port);
    EXPECT_TRUE(loud.connected());
    loud.send_bytes(noise(bytes));
  }
  const int connections = std::getenv("MOTLEY_SOAK") != nullptr ? 10'000 : 300;
  for (int i = 0; i < connections; ++i) EXPECT_TRUE(RawClient(port).connected());

  // Clients that authenticate and send invalid messages afterwards.
  const auto malicious_client = [&](const std::string& control_bytes, const std::string& bulk_bytes) {
    const auto session = motley::transport::random_bytes<16>();
    const RawClient control(port), bulk(port);
    EXPECT_TRUE(control.authenticate(0, session, ""));
    EXPECT_TRUE(bulk.authenticate(1, session, ""));
    control.send_bytes(control_bytes);
    bulk.send_bytes(bulk_bytes);
    EXPECT_TRUE(control.is_refused());
    EXPECT_TRUE(bulk.is_refused());
  };
  for (std::uint16_t kind = 0; kind < 4; ++kind) malicious_client(head_of_frame(kind, 0xFFFFFFFFU), "");
  malicious_client("", head_of_frame(0, 0xFFFFFFFFU));
  malicious_client(noise(100), "");
  malicious_client("", noise(100));
  {
    const RawClient unpaired(port);  // one lane, closed without the other
    EXPECT_TRUE(unpaired.authenticate(0, motley::transport::random_bytes<16>(), ""));
  }
  EXPECT_TRUE(chief.alive()) << "training ended before all clients had connected; " << chief.err();

  expect_good_end(chief);
  expect_good_end(a);
  expect_good_end(b);
  EXPECT_TRUE(model("run") == quiet);
  EXPECT_EQ(members_of(folder_ / "run").left.size(), 0U) << chief.err();
  expect_exact_ledger("run");
}

// Bad arguments ---------------------------------------------------------------------------------------------------------------------------

TEST_F(RealAccess, Bad_arguments_exit_with_2_and_a_reason) {
  expect_refused({"train"}, {"JOB"});
  expect_refused({"train", "no-such-job.toml"}, {"no-such-job.toml"});
  expect_refused({"train", "job.toml", "--strategy", "bps"}, {"bps", "expected"});
  expect_refused({"train", "job.toml", "--set", "cluster.node.a.samples_per_secnod=3"}, {"samples_per_secnod", "samples_per_second"});
  expect_refused({"train", "job.toml", "--require-target"}, {"target_accuracy", "found", "expected"});
  expect_refused({"train", "job.toml", "--resume"}, {"--resume", "found", "expected"});
  expect_refused({"train", "job.toml", "--set", "model.kind=\"none\"", "--set", "model.values=10", "--out", "x"}, {"model.kind"});
  expect_refused({"chief"}, {"JOB"});
  expect_refused({"chief", "no-such-job.toml"}, {"no-such-job.toml"});
  expect_refused({"chief", "job.toml", "--resume"}, {"--out"});
  expect_refused({"chief", "job.toml", "--listen", "nowhere", "--out", "x"}, {"nowhere", "expected"});
  expect_refused({"chief", "job.toml", "--listen", "127.0.0.1:70000", "--out", "x"}, {"70000", "expected"});
  expect_refused({"chief", "job.toml", "--listen", "192.0.2.1:0", "--token-file", "token", "--out", "x"}, {"192.0.2.1"});
  expect_refused({"worker"}, {"--join"});
  expect_refused({"worker", "--join", "nowhere"}, {"nowhere", "expected"});
  expect_refused({"worker", "--join", "127.0.0.1:1", "--device", "abacus"}, {"abacus", "expected", "cpu"});
  expect_refused({"worker", "--join", "127.0.0.1:1", "--device", "emulated:-3"}, {"emulated:-3", "expected"});
  expect_refused({"replay"}, {"RUN"});
  expect_refused({"replay", "no-such-run"}, {"no-such-run"});
  fs::create_directories(folder_ / "no-run");
  expect_refused({"replay", "no-run"}, {"no-run"});
  expect_refused({"train", "no-run", "--resume"}, {"no-run"});
}

TEST_F(RealAccess, Worker_without_a_chief_gives_up_in_time) {
  const Ran ran = run({"worker", "--join", "unix:" + (folder_ / "nobody").string(), "--patience", "0.5"});
  EXPECT_EQ(ran.code, 3) << ran.err;
  EXPECT_NE(ran.err.find("no chief at unix:"), std::string::npos) << ran.err;
}

TEST_F(RealAccess, Unsuitable_worker_is_reported_and_the_run_continues) {
  Program chief = serve("run");
  const std::uint16_t port = port_of(chief);
  Program cuda = work("x", port, {"--device", "cuda:99"});
  EXPECT_EQ(cuda.wait().code, 2) << cuda.err();
  EXPECT_NE(cuda.err().find("cuda:99"), std::string::npos) << cuda.err();
  Program a = work("a", port), unnamed = work("a-name-that-the-job-does-not-know", port, {"--device", "cpu"});
  expect_good_end(chief);
  expect_good_end(a);
  expect_good_end(unnamed);
  EXPECT_NE(chief.out().find("a-name-that-the-job-does-not-know"), std::string::npos) << chief.out();
  expect_exact_ledger("run");
}

TEST_F(RealAccess, Foreign_and_damaged_checkpoints_are_refused) {
  Program program = train("run");
  expect_good_end(program);
  expect_refused({"chief", "job.toml", "--out", "run", "--resume", "--seed", "9"}, {"checkpoint of another job", "expected"});
  expect_refused({"chief", "job.toml", "--out", "run", "--resume", "--set", "model.hidden=[31]"}, {"another model", "expected"});

  const fs::path checkpoints = folder_ / "run" / "checkpoints";
  std::string name = text_of(checkpoints / "latest");
  name.erase(name.find_last_not_of('\n') + 1);
  const std::string whole = text_of(checkpoints / name);
  const auto damage = [&](const std::string& bytes) { write("run/checkpoints/" + name, bytes); };
  damage(whole.substr(0, whole.size() / 2));
  expect_refused({"train", "run", "--resume"}, {name});
  damage("");
  expect_refused({"train", "run", "--resume"}, {name});
  std::string turned = whole;
  turned[10] = static_cast<char>(turned[10] ^ 0x40);  // in the header
  damage(turned);
  expect_refused({"train", "run", "--resume"}, {name});
  fs::remove(checkpoints / name);
  expect_refused({"train", "run", "--resume"}, {name});
  damage(whole);
  Program resumed = motley({"train", "run", "--resume", "--json"}, "resumed");
  expect_good_end(resumed);
}

TEST_F(RealAccess, New_run_does_not_mix_with_an_existing_run) {
  Program first = train("run");
  expect_good_end(first);
  const Ran second = run({"train", "job.toml", "--out", "run", "--strategy", "asp"});
  EXPECT_TRUE(second.code == 2 || second.code == 0) << second.err;  // refused, or it began after the folder was emptied
  expect_exact_ledger("run");
  EXPECT_EQ(run({"replay", "run"}).code, 0);
}

TEST_F(RealAccess, Refused_resume_leaves_the_run_unchanged) {
  Program program = train("run");
  expect_good_end(program);
  const auto state = [&] {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "run"))
      if (entry.is_regular_file()) files[entry.path().string()] = text_of(entry.path());
    return files;
  };
  const auto before = state();
  expect_refused({"train", "run", "--resume", "--seed", "9"}, {"another job"});
  EXPECT_TRUE(state() == before);
}

}  // namespace
}  // namespace real
