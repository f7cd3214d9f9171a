// Peers of a pipeline that know the token and claim a false identity: no stage is expelled, none is impersonated, and training ends with
// the reference bits.
#include "runtime/small_pipeline_for_tests.h"
#include "runtime/wrong_frames_for_tests.h"

namespace motley::runtime {
namespace {

class PipelineValidation : public PipelineProcesses {
 protected:
  PipelineValidation() { heartbeat = from_seconds(60); }  // on a busy machine no stage is silent for too long
  /// Sends frames to the listeners, most of them wrong.
  void attack(const std::vector<transport::AcceptCallbacks*>& listeners, int frames) {
    constexpr std::uint64_t seed = 4'711;
    SCOPED_TRACE(seed);
    WrongMessages messages(seed);
    WrongPeer peer(io, options);
    std::size_t before = 0;
    for (int i = 0; i < frames; ++i) {
      if (i == frames / 8) before = resident_bytes();
      if (!peer.connected()) {
        peer.connect(*listeners[messages.below(listeners.size())]);
        if (messages.below(2) == 0) peer.say(wire::JoinRequest{node_name(1)});
        if (messages.below(4) == 0) peer.say(wire::StageHello{node_name(static_cast<std::uint32_t>(messages.below(4))), "127.0.0.1:1"});
      }
      peer.send_wrong(messages);
      transport::run_ready(io);
      ASSERT_FALSE(over) << "after " << i << " frames";
      ASSERT_TRUE(ended.empty()) << "after " << i << " frames";
    }
    EXPECT_GT(peer.closings, static_cast<std::size_t>(frames) / 4);
    EXPECT_LT(resident_bytes(), before + (std::size_t{64} << 20));
  }

  void expect_the_same_end() {
    EXPECT_EQ(story.count<trace::Repartitioned>(), 0U) << "no other layout was assigned";
    gate.open();
    ASSERT_TRUE(is_over());
    expect_good_end();
    EXPECT_EQ(values(), train_by_hand(micros));
  }
  [[nodiscard]] auto says(const std::string& words) const {
    return std::any_of(log.begin(), log.end(), [&](const std::string& line) { return line.find(words) != std::string::npos; });
  }
};

TEST_F(PipelineValidation, WrongFramesDoNotEndAPipelineChief) {
  start_and_wait();
  attack({&pipeline_chief->accept_callbacks()}, 5'000);
  expect_the_same_end();
}

TEST_F(PipelineValidation, WrongFramesDoNotEndAStage) {
  start_and_wait();
  attack({&stages[0]->accept_callbacks(), &stages[1]->accept_callbacks(), &stages[2]->accept_callbacks()}, 5'000);
  expect_the_same_end();
}

TEST_F(PipelineValidation, APendingNodeDoesNotReplaceAConnectedOne) {
  start_and_wait();
  WrongPeer peer(io, options);
  for (int i = 0; i < 20; ++i) {
    peer.connect(address);
    peer.say(wire::JoinRequest{node_name(1)});
    peer.say(wire::StageHello{node_name(1), "127.0.0.1:1"});
    ASSERT_TRUE(run_until(io, [&] { return !peer.connected(); }));
  }
  EXPECT_TRUE(says("is here already")) << log.back();
  expect_the_same_end();
}

TEST_F(PipelineValidation, ANodeIsReplacedWhenItIsSilent) {
  heartbeat = std::chrono::milliseconds(20);
  start_all();
  ASSERT_TRUE(run_until(io, [this] { return story.version() >= 7 || over; }));
  // Its host has vanished without closing the connection: here a peer that claimed to be node 1 and is silent.
  stages.erase(1);
  ASSERT_TRUE(run_until(io, [this] { return story.count<trace::Repartitioned>() >= 1 || over; }));
  WrongPeer silent(io, options);
  silent.connect(address);
  silent.say(wire::JoinRequest{node_name(1)});
  silent.say(wire::StageHello{node_name(1), "127.0.0.1:1"});
  start_stage(1);
  ASSERT_TRUE(run_until(io, [&] { return !silent.connected() || over; }));
  ASSERT_TRUE(is_over());
  expect_good_end();
  EXPECT_EQ(values(), train_by_hand(micros));
}

TEST_F(PipelineValidation, PeersSpeakOnlyForTheirOwnStage) {
  start_and_wait();
  const std::vector<wire::Message> lies{wire::Committed{1, 0, story.version() + 1, true, 0, {}},
                                        wire::Committed{1, 2, mini_batches, false, 0, {}}, wire::PeerLost{1, "so"}, wire::StageAssigned{1}};
  WrongPeer peer(io, options);
  for (const wire::Message& lie : lies) {
    peer.connect(address);
    peer.say(wire::JoinRequest{node_name(1)});
    peer.say(lie);
    ASSERT_TRUE(run_until(io, [&] { return !peer.connected(); }));
  }
  peer.connect(address);
  peer.say(wire::JoinRequest{node_name(1)});
  peer.send(wire::StageSlice{1, 0, story.version(), wire::StateKind::values, 0}, 8);
  ASSERT_TRUE(run_until(io, [&] { return !peer.connected(); }));
  expect_the_same_end();
}

/// Becomes node 1, and the only stage.
class OnlyStage : public PipelineValidation {
 protected:
  void SetUp() override {
    begins_with = {{0, blocks, 1}};
    start_pipeline_chief();
    stage.connect(address);
    stage.say(wire::JoinRequest{node_name(1)});
    stage.say(wire::StageHello{node_name(1), "127.0.0.1:1"});
    ASSERT_TRUE(run_until(io, [&] { return stage.received_messages.size() >= 3; }));  // JobDescription, StageHello and AssignStage
    ASSERT_TRUE(std::holds_alternative<wire::AssignStage>(stage.received_messages.back()));
  }
  void expect_that_the_real_one_ends_it() {
    start_stage(1);
    ASSERT_TRUE(is_over());
    expect_good_end();
    EXPECT_EQ(values(), train_by_hand(micros));
  }
  WrongPeer stage{io, options};
};

TEST_F(OnlyStage, IsExpelledWhenItReportsTooManyParts) {
  const wire::PartRecord once{0, 0, 0, 0, Duration{0}, Duration{0}};
  stage.say(wire::Committed{1, 0, 1, true, 0, std::vector<wire::PartRecord>(3 * micros * 2 + 1, once)});  // two mini-batches are allowed
  ASSERT_TRUE(run_until(io, [&] { return !stage.connected(); }));
  EXPECT_TRUE(says("expelled " + node_name(1))) << log.back();
  EXPECT_TRUE(says("reports 25 parts at once, expected at most 24")) << log.back();
  expect_that_the_real_one_ends_it();
}

TEST_F(OnlyStage, IsExpelledWhenItReportsWorkNotAllowed) {
  stage.say(wire::Committed{1, 0, 1, true, 0, {{0, 2 * micros, 0, 0, Duration{0}, Duration{0}}}});
  ASSERT_TRUE(run_until(io, [&] { return !stage.connected(); }));
  EXPECT_TRUE(says("reports micro-batch 8, expected one of mini-batches 1 to 2")) << log.back();
  expect_that_the_real_one_ends_it();
}

TEST_F(OnlyStage, ReportedTimesInTheFutureAreClipped) {
  stage.say(wire::Committed{1, 0, 1, true, 0, {{0, 0, 0, 0, from_seconds(1e9), from_seconds(2e9)}}});
  stage.say(wire::Committed{1, 0, 2, true, 0, {{0, micros, 0, 0, from_seconds(0), from_seconds(2e9)}}});
  ASSERT_TRUE(run_until(io, [this] { return story.count<trace::PartEnded>() >= 2; })) << "it is not held back";
  stage.hang_up();
  expect_that_the_real_one_ends_it();
  for (const trace::Event& event : story.events) EXPECT_LE(event.at, (*over)->ended) << trace::name_of(event.data);
}

TEST_F(PipelineValidation, NeighboursAreRefusedWithoutTheirKey) {
  start_and_wait();
  WrongPeer peer(io, options);
  for (std::uint32_t n = 0; n < nodes; ++n)
    for (std::uint32_t stage : {0U, 1U, 2U, ~0U}) {
      peer.connect(listens[n]);
      peer.say(wire::PeerHello{1, stage, 0});
      ASSERT_TRUE(run_until(io, [&] { return !peer.connected(); }));
    }
  for (std::uint32_t n = 0; n < nodes; ++n)
    for (const bool back : {false, true}) {
      peer.connect(listens[n]);
      peer.send(wire::ActivationSlice{1, 7 * micros, back, 0, {4}}, 16);
      ASSERT_TRUE(run_until(io, [&] { return !peer.connected(); }));
    }
  expect_the_same_end();
}

TEST_F(PipelineValidation, AnEarlyPeerHelloWithoutTheKeyHasNoEffect) {
  start_and_wait();
  std::vector<std::unique_ptr<WrongPeer>> early;
  for (std::uint32_t n = 0; n + 1 < nodes; ++n)
    for (const std::uint32_t stage : {0U, 1U}) {
      early.push_back(std::make_unique<WrongPeer>(io, options));
      early.back()->connect(listens[n]);
      early.back()->say(wire::PeerHello{2, stage, 0});
    }
  transport::run_ready(io);
  stages.erase(2);  // the others are assigned again
  ASSERT_TRUE(run_until(io, [this] { return says("a stage was lost") || over; }));
  gate.open();
  ASSERT_TRUE(is_over());
  expect_good_end();
  EXPECT_EQ(story.count<trace::Repartitioned>(), 2U) << "two stages, one new layout";
  EXPECT_EQ(values(), train_by_hand(micros));
}

TEST_F(PipelineValidation, ConnectionsThatStayPendingAreClosed) {
  heartbeat = std::chrono::milliseconds(20);
  join_deadline = std::chrono::milliseconds(50);
  start_and_wait();
  WrongPeer idle(io, options), unfinished(io, options), neighbour(io, options);
  idle.connect(address);
  unfinished.connect(address);
  unfinished.say(wire::JoinRequest{node_name(1)});
  neighbour.connect(listens[1]);
  neighbour.say(wire::PeerHello{99, 0, 0});  // of a generation that never comes
  ASSERT_TRUE(run_until(io, [&] { return !idle.connected() && !unfinished.connected() && !neighbour.connected(); }));
  expect_the_same_end();
}

TEST_F(PipelineValidation, NodesMayPrepareLongerThanTheJoinDeadline) {
  join_deadline = from_seconds(1);
  heartbeat = join_heartbeat = std::chrono::milliseconds(20);
  Gate preparing;
  const Opens opens_too{preparing};
  preparing.close();
  before_preparing = [&] { preparing.pass(); };
  start_all();
  WrongPeer idle(io, options);
  idle.connect(address);
  ASSERT_TRUE(run_until(io, [&] { return !idle.connected(); }));                                // after that time
  for (const std::string& line : log) EXPECT_EQ(line.find(" at "), std::string::npos) << line;  // no node was expelled
  preparing.open();
  ASSERT_TRUE(is_over());
  expect_good_end();
}

}  // namespace
}  // namespace motley::runtime
