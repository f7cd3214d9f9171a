// Which peers may use a connection, which names, memberships and steps they may claim, and how long they may stay unidentified.
#include <algorithm>

#include "runtime/paused_cluster_for_tests.h"

namespace motley::runtime {
namespace {

class PendingConnections : public PausedCluster {
 protected:
  [[nodiscard]] static bool says(const std::vector<std::string>& log, const std::string& words) {
    return std::any_of(log.begin(), log.end(), [&](const std::string& line) { return line.find(words) != std::string::npos; });
  }
  auto is_closed(const WrongPeer& peer) {
    return run_until(io, [&] { return !peer.connected(); });
  }
  static wire::Contributed contributed(WorkerId id, Step step, Version base) {
    return {.worker = id, .step = step, .base = base, .report = {.finite = false}};
  }
  /// Becomes a member of a running training, and has not begun its first order.
  WorkerId join(WrongPeer& peer) {
    peer.connect(address);
    peer.say(wire::JoinRequest{node_name(3)});
    peer.say(wire::Hello{.node = node_name(3), .attempt = 1, .node_index = 3});
    std::optional<WorkerId> id;
    EXPECT_TRUE(run_until(io, [&] {
      for (const wire::Message& message : peer.received_messages)
        if (const auto* welcome = std::get_if<wire::Welcome>(&message)) id = welcome->worker;
      return id.has_value();
    }));
    return id.value_or(wire::no_worker);
  }
};

TEST_F(PendingConnections, ConnectionsThatStayPendingAreClosed) {
  job.heartbeat = std::chrono::milliseconds(20);
  job.join_deadline = std::chrono::milliseconds(50);
  job.servers = 2;
  job.join_heartbeat = std::chrono::milliseconds(5);
  start_and_wait();
  WrongPeer silent(io, options), undecided(io, options), at_server(io, options), waiting(io, options);
  silent.connect(address);
  undecided.connect(address);
  undecided.say(wire::JoinRequest{node_name(3)});
  at_server.connect(server_address);
  waiting.connect(server_address);
  waiting.say(wire::Attach{{77}, 5});
  for (const WrongPeer* peer : {&silent, &undecided, &at_server, &waiting}) ASSERT_TRUE(is_closed(*peer));
  expect_that_training_finishes();
}

TEST_F(PendingConnections, WorkersMayWaitLongForTheQuorum) {
  job.heartbeat = job.join_heartbeat = std::chrono::milliseconds(20);
  job.join_deadline = from_seconds(1);
  start_chief();
  start_worker(0);
  start_worker(1);
  WrongPeer silent(io, options);
  silent.connect(address);
  ASSERT_TRUE(is_closed(silent));  // the deadline has passed
  EXPECT_FALSE(says(chief->log, "expelled node-"));
  start_worker(2);
  ASSERT_TRUE(all_are_over());
  expect_every_sample_once();
  EXPECT_EQ(chief->values(), train_by_hand(job));
}

TEST_F(PendingConnections, NamesAndTheLogAreShortAndPrintable) {
  start_and_wait();
  WrongPeer peer(io, options);
  const std::vector<std::string> names{"\x1b[2J\x1b[1;1H", std::string(1'000'000, 'x'), std::string(65, 'x'), "a\nb", "\xc2\x9b"};
  for (const std::string& name : names) {
    peer.connect(address);
    peer.say(wire::JoinRequest{name});
    ASSERT_TRUE(is_closed(peer));
  }
  for (const std::string& line : chief->log) {
    EXPECT_LT(line.size(), 500U);
    EXPECT_TRUE(std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c <= '~'; })) << line;
  }
  expect_that_training_finishes();
  EXPECT_EQ(chief->values(), train_by_hand(job));
}

TEST_F(PendingConnections, AWorkerWithABadNameTellsItsUser) {
  std::optional<Outcome> over;
  WorkerProcessOptions made;
  made.chief = address;
  made.node = "a\nb";
  WorkerProcess worker(
      io, made, [](const std::string&) -> Result<WorkerSetup> { return bad_input("never"); }, [](const std::string&) {});
  worker.start([&](Outcome how) { over = std::move(how); });
  ASSERT_TRUE(over.has_value());
  ASSERT_FALSE(over->ok());
  EXPECT_EQ(over->error().next, Next::tell_user);
}

TEST_F(PendingConnections, MembersPushOnlyOrderedSteps) {
  start_and_wait();
  WrongPeer peer(io, options);
  const WorkerId id = join(peer);
  peer.say(wire::Attach{id});
  for (std::uint64_t step = 0; step < 100 && peer.connected(); ++step) {
    peer.send(wire::Push{id, Step{step}, SliceId{0}, 32}, linear_layout().slices[0].count * sizeof(float));
    transport::run_ready(io);
  }
  ASSERT_TRUE(is_closed(peer));
  EXPECT_TRUE(says(chief->log, "those that it was ordered")) << chief->log.back();
  expect_that_training_finishes();
}

TEST_F(PendingConnections, MembersSpeakInOrderAndForThemselves) {
  start_and_wait();
  const std::vector<std::function<wire::Message(WorkerId)>> lies{
      [](WorkerId id) {
        return wire::Began{id, Step{1'000}};
      },
      [](WorkerId id) { return contributed(id, Step{1'000}, {}); },
      [](WorkerId id) { return contributed(id, {}, Version{1'000}); },
      [](WorkerId) { return wire::Heartbeat{{0}}; },
      [](WorkerId) { return wire::Leaving{{0}}; },
      [](WorkerId) {
        return wire::Gathered{{0}, {0}, {5}};
      },
      [](WorkerId) {
        return wire::ServerHello{{1}, "127.0.0.1:1", {}};
      },
      [](WorkerId) { return wire::Hello{.node = node_name(3), .attempt = 1, .node_index = 3}; },
      [](WorkerId) { return wire::Hello{.node = node_name(0), .attempt = 2, .node_index = 0}; },
      [](WorkerId) { return wire::Hello{.node = node_name(3), .attempt = 2, .node_index = 1}; }};
  WrongPeer peer(io, options);
  for (const auto& lie : lies) {
    const WorkerId id = join(peer);
    peer.say(lie(id));
    ASSERT_TRUE(is_closed(peer)) << wire::name_of(lie(id));
  }
  expect_that_training_finishes();
}

/// Inputs are recorded on disk, which no peer may fill.
TEST_F(PendingConnections, RepeatedHellosAreRecordedOnce) {
  job.heartbeat = no_deadline;  // no tick is recorded meanwhile
  start_chief();
  WrongPeer peer(io, options);
  peer.connect(chief->process->accept_callbacks());
  peer.say(wire::JoinRequest{node_name(0)});
  peer.say(wire::Hello{.node = node_name(0), .attempt = 1, .node_index = 0});
  transport::run_ready(io);
  const std::size_t recorded = chief->inputs.size();
  ASSERT_GT(recorded, 0U);
  constexpr std::uint32_t attempts = 300;
  for (std::uint32_t attempt = 2; attempt <= attempts; ++attempt)
    peer.say(wire::Hello{.node = node_name(0), .attempt = attempt, .node_index = 0});
  transport::run_ready(io);
  EXPECT_TRUE(peer.connected()) << "a pending worker may repeat its Hello";
  EXPECT_EQ(chief->inputs.size(), recorded);
  start_worker(1);
  start_worker(2);
  std::optional<wire::Welcome> welcome;
  ASSERT_TRUE(run_until(io, [&] {
    for (const wire::Message& message : peer.received_messages)
      if (const auto* given = std::get_if<wire::Welcome>(&message)) welcome = *given;
    return welcome.has_value();
  }));
  EXPECT_EQ(welcome->attempt, attempts);
  peer.hang_up();
  ASSERT_TRUE(all_are_over());
  expect_every_sample_once();
  EXPECT_EQ(chief->story.count<trace::Joined>(), 3U);
}

TEST_F(PendingConnections, MembersThatLeftDoNotRejoinOnThatConnection) {
  start_and_wait();
  const std::vector<std::function<wire::Message(WorkerId)>> repetitions{
      [](WorkerId id) { return wire::Leaving{id}; },
      [](WorkerId) { return wire::Hello{.node = node_name(3), .attempt = 2, .node_index = 3}; }};
  for (const auto& repeated : repetitions) {
    WrongPeer peer(io, options);
    const std::size_t joined = chief->story.count<trace::Joined>();
    const WorkerId id = join(peer);
    peer.say(wire::Leaving{id});
    for (int i = 0; i < 100; ++i) peer.say(repeated(id));
    ASSERT_TRUE(is_closed(peer)) << wire::name_of(repeated(id));
    EXPECT_EQ(chief->story.count<trace::Joined>(), joined + 1);
  }
  EXPECT_EQ(chief->story.count<trace::Left>(), repetitions.size());
  expect_that_training_finishes();
}

TEST_F(PendingConnections, HelloAfterStopIsIgnored) {
  start_and_wait();
  WrongPeer member(io, options), peer(io, options);
  join(member);  // and does not leave: the chief waits for it
  peer.connect(address);
  peer.say(wire::JoinRequest{node_name(3)});
  ASSERT_TRUE(run_until(io, [&] { return !peer.received_messages.empty(); }));
  chief->process->interrupt();
  peer.say(wire::Hello{.node = node_name(3), .attempt = 1, .node_index = 3});
  ASSERT_TRUE(run_until(io, [&] {
    return std::any_of(peer.received_messages.begin(), peer.received_messages.end(),
                       [](const wire::Message& message) { return std::holds_alternative<wire::Stop>(message); });
  }));
  const std::size_t recorded = chief->inputs.size();
  const wire::Hello again{node_name(3), 2, 0, 3};
  constexpr std::uint32_t times = 100;
  for (std::uint32_t i = 0; i < times; ++i) peer.say(wire::Hello{.node = node_name(3), .attempt = i + 2, .node_index = 3});
  peer.say(again);  // not the next: all before it were received when this closes the connection
  ASSERT_TRUE(is_closed(peer));
  EXPECT_LT(chief->inputs.size(), recorded + times * wire::encoded_bytes(again) / 2) << "ticks, and workers that leave";
  member.hang_up();
  gate.open();
  ASSERT_TRUE(all_are_over());
}

TEST_F(PendingConnections, WorkersAttachToServersOnlyAsThemselves) {
  job.servers = 2;
  start_and_wait();
  WrongPeer peer(io, options);
  for (std::uint32_t worker = 0; worker < job.quorum; ++worker) {
    peer.connect(server_address);
    peer.say(wire::Attach{{worker}, worker});
    ASSERT_TRUE(is_closed(peer));
  }
  EXPECT_TRUE(says(server_log, "it attaches as worker 2, which it is not")) << server_log.back();
  peer.connect(server_address);
  peer.send(wire::Push{{0}, Step{5}, linear_layout(2).of(ServerId{1})[0], 32}, 16);
  ASSERT_TRUE(is_closed(peer));
  expect_that_training_finishes();
}

TEST_F(PendingConnections, TheFirstProcessIsTheServer) {
  job.servers = 2;
  start_and_wait();
  WrongPeer peer(io, options);
  for (const std::uint32_t k : {0U, 1U, 2U, ~0U}) {
    peer.connect(address);
    peer.say(wire::JoinRequest{"server " + std::to_string(k)});
    peer.say(wire::ServerHello{{k}, "127.0.0.1:1", {}});
    ASSERT_TRUE(is_closed(peer));
  }
  EXPECT_TRUE(says(chief->log, "it wants to be server 1")) << chief->log.back();
  expect_that_training_finishes();
}

}  // namespace
}  // namespace motley::runtime
