// The chief and peers that are alive without progress: hung workers, hung servers, and its own suspension.
#include <gtest/gtest.h>

#include "protocol/chief_driver_for_tests.h"

namespace motley::protocol {
namespace {

constexpr WorkerId ann{0};
constexpr WorkerId bob{1};

/// Ann and Bob have both made a step in no time; now both have another. No worker is ever silent.
ChiefDriver at_work(const std::string& strategy = "bsp") {
  ChiefOptions options = small_job();
  options.quorum = 2;
  options.silence_deadline = from_seconds(1e6);
  ChiefDriver h = driver_of(strategy, options);
  h.hello(0);
  h.hello(1);
  h.finish(ann);
  h.finish(bob);
  return h;
}

void answer_probes(ChiefDriver& h) {
  for (const wire::Probe& probe : h.sent<wire::Probe>()) h.step(Received{peer(probe.server), probe});
}

TEST(Watching, Worker_beyond_its_limit_is_expelled) {
  ChiefDriver h = at_work();
  h.finish(ann);
  const wire::Order stuck = h.orders.at(bob);
  for (const double now : {10, 16, 20, 30}) {
    h.tick_at(now);
    EXPECT_TRUE(h.recorded<Left>().empty()) << now;
    answer_probes(h);
  }
  h.tick_at(31);
  ASSERT_EQ(h.recorded<Left>().size(), 1U);
  const Left left = h.recorded<Left>()[0];
  EXPECT_EQ(left.worker, bob);
  EXPECT_EQ(left.why, LeaveReason::step_too_long);
  ASSERT_TRUE(left.stuck.has_value());
  EXPECT_EQ(left.stuck->step, stuck.step);
  EXPECT_EQ(left.stuck->took, from_seconds(31));
  EXPECT_FALSE(left.stuck->computed);
  EXPECT_EQ(h.sent<wire::Fenced>().size(), 1U) << "when its device recovers it rejoins under a new id";
  EXPECT_EQ(h.sent<wire::Forget>().size(), 2U) << "one per server";
  EXPECT_EQ(h.ordered(), std::vector<WorkerId>{ann}) << "which no longer waits";
  while (!h.chief.finished()) h.finish(ann);
  EXPECT_TRUE(h.chief.ledger().complete());
}

TEST(Watching, Worker_that_reports_but_pushes_nothing_is_expelled) {
  ChiefDriver h = at_work();
  h.finish(ann);
  h.report_contributed(bob);
  h.tick_at(16);
  answer_probes(h);
  h.tick_at(31);
  ASSERT_EQ(h.recorded<Left>().size(), 1U);
  EXPECT_TRUE(h.recorded<Left>()[0].stuck->computed);
}

/// Workers with non-finite values wait for the verdict on the model, but not for ever.
TEST(Watching, Divergence_is_decided_when_the_last_worker_hangs) {
  for (const std::string strategy : {"bsp", "asp", "ssp"}) {
    SCOPED_TRACE(strategy);
    ChiefDriver h = at_work(strategy);
    const std::uint32_t enough = small_job().refusals_in_a_row;
    for (std::uint32_t i = 0; i < 2 * enough && h.orders.contains(ann); ++i) h.finish(ann, false);
    EXPECT_FALSE(h.chief.finished()) << "Bob's step may decide the cause";
    h.tick_at(16);
    answer_probes(h);
    if (h.orders.contains(ann)) h.finish(ann, false);  // it does not hang
    h.tick_at(31);
    for (std::uint32_t i = 0; i < enough && !h.chief.finished(); ++i) {
      ASSERT_TRUE(h.orders.contains(ann)) << "no other worker is left";
      h.finish(ann, false);
    }
    EXPECT_TRUE(h.chief.finished());
    ASSERT_EQ(h.recorded<Finished>().size(), 1U);
    EXPECT_EQ(h.recorded<Finished>()[0].why, EndReason::diverged);
  }
}

TEST(Watching, Idle_worker_is_not_waited_for) {
  ChiefDriver h = at_work();
  h.finish(ann);  // and waits for Bob at the barrier
  h.tick_at(20);
  answer_probes(h);
  h.finish(bob);
  h.tick_at(49);
  answer_probes(h);
  EXPECT_TRUE(h.recorded<Left>().empty());
}

TEST(Watching, Only_a_server_that_owes_its_Probe_is_at_fault) {
  ChiefDriver h = at_work();
  h.tick_at(15);
  EXPECT_TRUE(h.sent<wire::Probe>().empty()) << "no worker has waited for long";
  h.tick_at(16);
  ASSERT_EQ(h.sent<wire::Probe>().size(), 2U);
  h.step(Received{peer(ServerId{0}), wire::Probe{ServerId{0}}});
  h.step(Received{peer(ServerId{0}), wire::Probe{ServerId{1}}});  // not an answer of another server
  h.step(Received{peer(bob), wire::Probe{ServerId{1}}});
  for (const double now : {31, 40, 46}) {
    h.tick_at(now);
    EXPECT_TRUE(h.recorded<Left>().empty()) << now;
    EXPECT_TRUE(h.recorded<ServerStuck>().empty()) << now;
  }
  h.tick_at(46.1);
  ASSERT_EQ(h.recorded<ServerStuck>().size(), 1U);
  EXPECT_EQ(h.recorded<ServerStuck>()[0].server, ServerId{1});
  EXPECT_TRUE(h.recorded<Left>().empty());
  EXPECT_TRUE(h.chief.finished());
}

TEST(Watching, Server_that_owes_the_last_model_is_found) {
  ChiefDriver h = at_work();
  while (!h.chief.finished()) {
    h.finish(ann);
    h.finish(bob);
  }
  h.tick_at(10);
  EXPECT_TRUE(h.last.empty());
  h.tick_at(16);
  EXPECT_EQ(h.sent<wire::Probe>().size(), 2U);
  h.tick_at(46.1);
  EXPECT_EQ(h.recorded<ServerStuck>().size(), 1U);
}

TEST(Watching, Suspension_of_the_chief_expels_no_worker) {
  for (const bool hung : {false, true}) {
    ChiefOptions options = small_job();
    options.quorum = 2;
    options.silence_deadline = from_seconds(hung ? 1e6 : 5);
    ChiefDriver h = driver_of("bsp", options);
    h.hello(0);
    h.hello(1);
    h.finish(ann);
    h.now = at_seconds(1000);
    h.step(DriverPaused{from_seconds(999)});
    h.step(Tick{});
    EXPECT_TRUE(h.recorded<Left>().empty()) << "neither hung nor silent";
    h.finish(bob);
    EXPECT_EQ(h.ordered().size(), 2U);
  }
}

TEST(Watching, Without_DriverPaused_the_chief_expels_all) {
  ChiefOptions options = small_job();
  options.quorum = 2;
  ChiefDriver h = driver_of("bsp", options);
  h.hello(0);
  h.hello(1);
  h.tick_at(1000);
  EXPECT_EQ(h.recorded<Left>().size(), 2U);
}

}  // namespace
}  // namespace motley::protocol
