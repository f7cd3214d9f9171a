// Joining: when a worker is admitted, under which id, and the answers to unknown workers.
#include "protocol/chief.h"

#include <gtest/gtest.h>

#include "protocol/chief_driver_for_tests.h"

namespace motley::protocol {
namespace {

using Workers = std::vector<WorkerId>;
constexpr WorkerId ann{0};
constexpr WorkerId bob{1};

TEST(Joining, Welcome_repeats_the_attempt_on_the_connection) {
  ChiefDriver h = driver_of("bsp");
  h.step(Received{pending_worker(7), wire::Hello{.node = "node", .attempt = 3}});
  const auto& welcome = std::get<Send>(h.last.front());
  EXPECT_EQ(welcome.to, pending_worker(7));
  EXPECT_EQ(std::get<wire::Welcome>(welcome.message).attempt, 3U);
  ASSERT_EQ(h.recorded<Joined>().size(), 1U);
  EXPECT_EQ(h.recorded<Joined>()[0].node, "node");
}

TEST(Joining, Orders_are_sent_when_the_quorum_is_reached) {
  ChiefOptions options = small_job();
  options.quorum = 2;
  ChiefDriver h = driver_of("bsp", options);
  h.hello(0);
  EXPECT_TRUE(h.ordered().empty());
  h.hello(1);
  EXPECT_EQ(h.ordered(), (Workers{ann, bob}));
  EXPECT_EQ(h.orders.at(ann).lease.size(), 10U) << "half the global batch each";
}

TEST(Joining, No_worker_is_admitted_before_the_start) {
  ChiefOptions options = small_job();
  options.quorum = 2;
  ChiefDriver h = driver_of("bsp", options);
  EXPECT_EQ(h.hello(0), std::nullopt);
  EXPECT_TRUE(h.last.empty());
  EXPECT_EQ(h.chief.membership().size(), 0U);
  EXPECT_EQ(h.hello(1), bob);
  EXPECT_EQ(h.members.at(0), ann);
}

TEST(Joining, Orders_are_sent_without_the_quorum_after_the_deadline) {
  ChiefOptions options = small_job();
  options.quorum = 3;
  ChiefDriver h = driver_of("bsp", options);
  h.now = at_seconds(10);
  h.hello(0);
  h.now = at_seconds(14);
  h.hello(1);
  h.tick_at(15);
  EXPECT_TRUE(h.ordered().empty());
  h.tick_at(15.1);
  EXPECT_EQ(h.ordered(), (Workers{ann, bob})) << "a pending worker never counts as silent";
}

TEST(Joining, Quorum_deadline_counts_from_the_first_pending_worker) {
  ChiefOptions options = small_job();
  options.quorum = 2;
  ChiefDriver h = driver_of("bsp", options);
  h.hello(0);
  h.now = at_seconds(3);
  h.lose_pending(0);
  h.now = at_seconds(8);
  h.hello(1);
  h.tick_at(9);
  EXPECT_TRUE(h.ordered().empty()) << "the first one has left; the second has waited for a second";
  h.tick_at(13.1);
  EXPECT_EQ(h.ordered(), (Workers{ann})) << "a pending worker that left has used no id";
}

TEST(Joining, Worker_that_dies_before_the_start_is_not_planned_for) {
  ChiefOptions options = small_job();
  options.quorum = 2;
  ChiefDriver h = driver_of("bsp", options);
  h.hello(0);
  h.lose_pending(0);
  EXPECT_TRUE(h.last.empty());
  h.hello(1);
  EXPECT_TRUE(h.ordered().empty());
  h.hello(2);
  EXPECT_EQ(h.ordered(), (Workers{ann, bob}));
}

TEST(Joining, Ids_follow_node_index_then_name_then_connection) {
  struct PendingWorker {
    std::uint32_t connection;
    wire::Hello hello;
  };
  std::vector<PendingWorker> in_order{{.connection = 7, .hello = {.node = "z", .attempt = 1, .node_index = 0}},
                                      {.connection = 3, .hello = {.node = "a", .attempt = 1, .node_index = 1}},
                                      {.connection = 6, .hello = {.node = "b", .attempt = 1, .node_index = 1}},
                                      {.connection = 2, .hello = {.node = "a", .attempt = 1}},
                                      {.connection = 5, .hello = {.node = "a", .attempt = 1}}};
  std::vector<std::size_t> coming{0, 1, 2, 3, 4};
  do {
    ChiefOptions options = small_job();
    options.quorum = 5;
    ChiefDriver h = driver_of("bsp", options);
    for (const std::size_t i : coming) h.hello(in_order[i].connection, in_order[i].hello);
    for (std::uint32_t i = 0; i < in_order.size(); ++i) ASSERT_EQ(h.members.at(in_order[i].connection), WorkerId{i});
    ASSERT_EQ(h.orders.at(WorkerId{4}).lease.ranges[0].first, 16U) << "so do the leases";
  } while (std::next_permutation(coming.begin(), coming.end()));
}

TEST(Joining, Second_Hello_of_a_pending_worker_replaces_the_first) {
  ChiefOptions options = small_job();
  options.quorum = 2;
  ChiefDriver h = driver_of("bsp", options);
  h.hello(0, wire::Hello{.node = "old", .attempt = 1, .node_index = 9});
  h.hello(0, wire::Hello{.node = "new", .attempt = 2, .node_index = 0, .profile = {.max_batch = 3}});
  EXPECT_TRUE(h.last.empty()) << "it is still one pending worker";
  h.hello(1, wire::Hello{.node = "other", .attempt = 1, .node_index = 1});
  EXPECT_EQ(h.sent<wire::Welcome>()[0].attempt, 2U);
  EXPECT_EQ(h.recorded<Joined>()[0].node, "new");
  EXPECT_EQ(h.orders.at(ann).lease.size(), 3U) << "with the memory limit of the last Hello";
  EXPECT_EQ(h.orders.at(bob).lease.size(), 17U);
}

TEST(Joining, Late_worker_is_limited_by_its_memory_too) {
  ChiefDriver h = driver_of("asp");
  h.hello(0);
  h.hello(1, wire::Hello{.node = "small", .attempt = 1, .node_index = 0, .profile = {.max_batch = 4}});
  EXPECT_EQ(h.orders.at(bob).lease.size(), 4U);
}

TEST(Joining, Second_Hello_of_a_member_replaces_the_membership) {
  ChiefDriver h = driver_of("asp");
  h.hello(5);
  h.hello(5, "node", 2);
  ASSERT_EQ(h.recorded<Left>().size(), 1U);
  EXPECT_EQ(h.recorded<Left>()[0].worker, ann);
  EXPECT_EQ(h.ordered(), (Workers{bob}));
  EXPECT_EQ(h.orders.at(bob).lease.ranges[0].first, 0U) << "the lease of the first membership returned";
  EXPECT_EQ(h.chief.membership().all(), (Workers{bob}));
}

TEST(Joining, Unknown_worker_is_fenced) {
  ChiefDriver h = driver_of("asp");
  h.say(WorkerId{9}, wire::Heartbeat{WorkerId{9}});
  ASSERT_EQ(h.sent<wire::Fenced>().size(), 1U);
  EXPECT_EQ(h.sent<wire::Fenced>()[0].worker, WorkerId{9});
  EXPECT_EQ(h.last.size(), 1U);
}

TEST(Joining, Only_pending_workers_send_Hello) {
  ChiefDriver h = driver_of("asp");
  h.hello(0);
  h.step(Received{peer(ann), wire::Hello{.node = "node", .attempt = 2}});
  h.step(Received{peer(ServerId{0}), wire::Hello{.node = "node", .attempt = 2}});
  EXPECT_TRUE(h.last.empty());
  EXPECT_EQ(h.chief.membership().size(), 1U);
}

}  // namespace
}  // namespace motley::protocol
