// Which messages a pipeline's chief accepts from nodes and stages, without sockets.
#include "runtime/pipeline_chief_validation.h"

#include <gtest/gtest.h>

#include "runtime/fake_connection_for_tests.h"

namespace motley::runtime {
namespace {

using wire::Lane;

/// Two nodes, two stages in generation 3; two mini-batches are allowed and none is committed.
class PipelineChiefChecks : public testing::Test, public PeerOwner {
 protected:
  PipelineChiefChecks() {
    cluster.nodes.resize(2);
    cluster.nodes[0].name = "a";
    cluster.nodes[1].name = "b";
    cluster.heartbeat = from_seconds(1);
    layout.generation = 3;
    layout.cut = {{0, 1, 0}, {1, 2, 1}};
    layout.micro_batches = 4;
    layout.allowed = 2;
    layout.committed = {0, 0};
    stage = &accept("a", 0);
  }
  StagePeer& accept(const std::string& name, std::optional<std::uint32_t> device) {
    StagePeer& peer = peers.add(std::make_unique<PeerConnection>(std::make_unique<FakeConnection>(), io, transport::Options{}, *this),
                                Instant{from_seconds(10)});
    peer.role = wire::Sender::stage;
    peer.name = name;
    peer.device = device;
    return peer;
  }
  /// Empty: accepted.
  [[nodiscard]] std::string why(const StagePeer& from, const wire::Message& message, Lane lane = Lane::control) const {
    return runtime::objection(from, lane, message, {cluster, layout, peers, now}).value_or("");
  }
  wire::Objection objection(const PeerConnection&, wire::Lane, const wire::Message&) const override { return {}; }
  void expel(PeerConnection&, const std::string&) override {}
  void on_message(PeerConnection&, wire::Message) override {}
  std::span<std::byte> receive_buffer(PeerConnection&, const wire::Message&, std::size_t) override { return {}; }
  void received(PeerConnection&, const wire::Message&) override {}
  void closed(PeerConnection&, const Error&) override {}

  boost::asio::io_context io;
  cluster::Spec cluster;
  PipelineLayout layout;
  StagePeers peers{io};
  StagePeer* stage = nullptr;
  Instant now{from_seconds(11)};
};

TEST_F(PipelineChiefChecks, A_connected_node_is_replaced_only_when_silent) {
  const StagePeer& second = accept("a", std::nullopt);
  EXPECT_NE(why(second, wire::StageHello{"a", "127.0.0.1:1"}).find("is here already"), std::string::npos);
  now = Instant{from_seconds(13.5)};
  EXPECT_EQ(why(second, wire::StageHello{"a", "127.0.0.1:1"}), "");
}

TEST_F(PipelineChiefChecks, Nodes_are_the_jobs_and_as_in_JoinRequest) {
  const StagePeer& pending = accept("b", std::nullopt);
  EXPECT_EQ(why(pending, wire::StageHello{"b", "127.0.0.1:1"}), "");
  EXPECT_NE(why(pending, wire::StageHello{"a", "127.0.0.1:1"}), "");
  EXPECT_NE(why(pending, wire::StageHello{"b", "nowhere"}), "");
  EXPECT_NE(why(accept("c", std::nullopt), wire::StageHello{"c", "127.0.0.1:1"}), "");
  EXPECT_NE(why(*stage, wire::StageHello{"a", "127.0.0.1:1"}), "") << "it is a node already";
  EXPECT_NE(why(pending, wire::StageAssigned{3}), "") << "it is no node yet";
}

TEST_F(PipelineChiefChecks, Stages_speak_for_themselves_and_this_generation) {
  EXPECT_EQ(why(*stage, wire::Committed{3, 0, 1, true, 0, {}}), "");
  EXPECT_NE(why(*stage, wire::Committed{3, 1, 1, true, 0, {}}), "") << "another stage";
  EXPECT_NE(why(*stage, wire::Committed{4, 0, 1, true, 0, {}}), "") << "a later generation";
  EXPECT_EQ(why(*stage, wire::Committed{2, 1, 9, true, 0, {}}), "") << "ignored: an earlier generation";
  EXPECT_NE(why(*stage, wire::StageStatus{4, 0, false}), "");
  layout.cut = {{0, 2, 1}};
  EXPECT_NE(why(*stage, wire::PeerLost{3, "so"}), "") << "it computes no stage";
}

TEST_F(PipelineChiefChecks, Progress_is_in_order_and_within_bounds) {
  EXPECT_NE(why(*stage, wire::Committed{3, 0, 2, true, 0, {}}), "") << "the first comes first";
  layout.committed[0] = 2;
  EXPECT_NE(why(*stage, wire::Committed{3, 0, 3, true, 0, {}}), "") << "two are allowed";
  layout.committed[0] = 0;
  const wire::PartRecord part{0, 0, 0, 0, Duration{0}, Duration{0}};
  EXPECT_EQ(why(*stage, wire::Committed{3, 0, 1, true, 0, std::vector<wire::PartRecord>(24, part)}), "");
  EXPECT_NE(why(*stage, wire::Committed{3, 0, 1, true, 0, std::vector<wire::PartRecord>(25, part)}), "");
  wire::PartRecord late = part;
  late.micro = 8;
  EXPECT_NE(why(*stage, wire::Committed{3, 0, 1, true, 0, {late}}), "") << "of a mini-batch that is not allowed";
}

TEST_F(PipelineChiefChecks, Models_are_of_allowed_mini_batches) {
  const wire::StageSlice slice{3, 0, 2, wire::StateKind::values, 0};
  EXPECT_EQ(why(*stage, slice, Lane::bulk), "");
  wire::StageSlice later = slice;
  later.mini_batches = 3;
  EXPECT_NE(why(*stage, later, Lane::bulk), "");
}

}  // namespace
}  // namespace motley::runtime
