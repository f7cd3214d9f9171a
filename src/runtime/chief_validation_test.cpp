// Which messages a chief accepts from workers and servers: their own, in order, and only about what they were ordered.
#include "runtime/chief_validation.h"

#include <gtest/gtest.h>

#include "runtime/linear_source_for_tests.h"
#include "wire/frame.h"

namespace motley::runtime {
namespace {

using wire::Lane;

class ChiefValidation : public testing::Test {
 protected:
  static constexpr WorkerId me{3};

  ChiefValidation() {
    worker.role = wire::Sender::worker;
    worker.name = "a";
    worker.node = NodeId{0};
    worker.attempt = 1;
    worker.memberships[me] = {.ordered = Step{5}, .began = Step{3}, .contributed = Step{2}};
    server.role = wire::Sender::server;
    server.name = "server 1";
  }
  /// Empty: accepted.
  [[nodiscard]] std::string why(const ChiefPeer& from, const wire::Message& message, Lane lane = Lane::control) const {
    return objection(from, lane, message, {servers, Version{7}}).value_or("");
  }
  static wire::Contributed contributed(WorkerId from, Step step, Version base) {
    wire::Contributed reported;
    reported.worker = from;
    reported.step = step;
    reported.base = base;
    return reported;
  }
  static wire::Hello hello(const std::string& node, std::uint32_t attempt, std::uint32_t node_index = 0) {
    wire::Hello message;
    message.node = node;
    message.attempt = attempt;
    message.node_index = node_index;
    return message;
  }

  ServerPlacement servers{linear_layout(2), 1e6};
  ChiefPeer worker, server;
};

TEST_F(ChiefValidation, Steps_come_in_order_and_only_if_ordered) {
  EXPECT_EQ(why(worker, wire::Began{me, Step{3}}), "");
  EXPECT_NE(why(worker, wire::Began{me, Step{2}}), "") << "it began this step before";
  EXPECT_NE(why(worker, wire::Began{me, Step{5}}), "") << "it was not ordered";
  EXPECT_EQ(why(worker, contributed(me, Step{2}, Version{7})), "");
  EXPECT_NE(why(worker, contributed(me, Step{1}, Version{7})), "");
  EXPECT_NE(why(worker, contributed(me, Step{5}, Version{7})), "");
  EXPECT_EQ(why(worker, wire::Push{me, Step{0}, SliceId{0}, 32}, Lane::bulk), "") << "slices of earlier steps may be late";
  EXPECT_NE(why(worker, wire::Push{me, Step{5}, SliceId{0}, 32}, Lane::bulk), "");
}

TEST_F(ChiefValidation, Contributions_are_on_versions_that_exist) {
  EXPECT_NE(why(worker, contributed(me, Step{2}, Version{8})).find("the newest is 7"), std::string::npos);
}

TEST_F(ChiefValidation, Workers_speak_for_their_own_memberships) {
  for (const wire::Message& message : std::vector<wire::Message>{wire::Began{WorkerId{4}, Step{3}}, wire::Heartbeat{WorkerId{4}},
                                                                 wire::Leaving{WorkerId{4}}, wire::Attach{WorkerId{4}, 1}})
    EXPECT_NE(why(worker, message).find("for worker 4, which it is not"), std::string::npos) << wire::name_of(message);
  EXPECT_EQ(why(worker, wire::Heartbeat{wire::no_worker}), "") << "pending workers have no id";
  EXPECT_NE(why(worker, wire::Leaving{wire::no_worker}), "");
}

TEST_F(ChiefValidation, Hello_repeats_the_identity_of_JoinRequest) {
  EXPECT_EQ(why(worker, hello("a", 2)), "");
  EXPECT_EQ(why(worker, hello("a", 2, wire::no_node_index)), "");
  EXPECT_NE(why(worker, hello("b", 2)), "");
  EXPECT_NE(why(worker, hello("a", 2, 1)), "") << "node index of another node";
  EXPECT_NE(why(worker, hello("a", 1)), "") << "attempts ascend";
  worker.awaits_job = true;
  EXPECT_NE(why(worker, hello("a", 2)), "");
}

TEST_F(ChiefValidation, Leaving_is_the_last_message_of_a_worker) {
  worker.left = true;
  EXPECT_NE(why(worker, wire::Leaving{me}), "");
  EXPECT_NE(why(worker, hello("a", 2)), "");
}

TEST_F(ChiefValidation, Valid_memberships_are_replaced_a_few_times) {
  worker.memberships_replaced = 7;
  EXPECT_EQ(why(worker, hello("a", 2)), "");
  worker.memberships_replaced = 8;
  EXPECT_NE(why(worker, hello("a", 2)), "");
}

TEST_F(ChiefValidation, Each_server_registers_once_under_its_name) {
  EXPECT_EQ(why(server, wire::ServerHello{ServerId{1}, "127.0.0.1:1", {}}), "");
  EXPECT_NE(why(server, wire::ServerHello{ServerId{1}, "nowhere", {}}), "") << "no address";
  EXPECT_NE(why(server, wire::ServerHello{ServerId{0}, "127.0.0.1:1", {}}), "") << "the chief itself";
  server.name = "server 2";
  EXPECT_NE(why(server, wire::ServerHello{ServerId{1}, "127.0.0.1:1", {}}), "") << "not its name";
  EXPECT_NE(why(server, wire::ServerHello{ServerId{2}, "127.0.0.1:1", {}}), "") << "the job has two servers";
  server.name = "server 1";
  servers.add(ServerId{1}, "127.0.0.1:1", {});
  EXPECT_NE(why(server, wire::ServerHello{ServerId{1}, "127.0.0.1:1", {}}), "") << "taken";
}

TEST_F(ChiefValidation, Servers_speak_for_themselves) {
  EXPECT_NE(why(server, wire::Probe{ServerId{1}}), "") << "it has not registered";
  server.server = ServerId{1};
  EXPECT_EQ(why(server, wire::Probe{ServerId{1}}), "");
  EXPECT_NE(why(server, wire::Probe{ServerId{0}}), "");
  EXPECT_NE(why(server, wire::Gathered{ServerId{0}, me, Step{1}}), "");
}

TEST_F(ChiefValidation, Slices_are_requested_once_and_as_placed) {
  server.server = ServerId{1};
  EXPECT_NE(why(server, wire::SlicePlacement{}), "") << "not all servers are there";
  servers.add(ServerId{1}, "127.0.0.1:1", {});
  servers.place_slices();
  EXPECT_EQ(why(server, wire::SlicePlacement{servers.head_starts()}), "");
  EXPECT_NE(why(server, wire::SlicePlacement{{9, 9}}), "");
  server.placed = true;
  EXPECT_NE(why(server, wire::SlicePlacement{servers.head_starts()}), "");
}

TEST_F(ChiefValidation, Distances_are_measured_a_limited_number_of_times) {
  server.echoes = 63;
  EXPECT_EQ(why(server, wire::Echo{}), "");
  server.echoes = 64;
  EXPECT_NE(why(server, wire::Echo{}), "");
}

TEST(ServerNamed, Reads_exactly_server_and_a_number) {
  EXPECT_EQ(server_named("server 12"), ServerId{12});
  for (const std::string name : {"server", "server ", "server -1", "server 1 ", "server 4294967296", "a server 1"})
    EXPECT_EQ(server_named(name), std::nullopt) << name;
}

}  // namespace
}  // namespace motley::runtime
