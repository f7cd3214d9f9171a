// The chief and those who live but do not get on: workers that hang, servers that hang, and its own absence.
#include <gtest/gtest.h>

#include "protocol/chief_driver_for_tests.h"

namespace motley::protocol {
namespace {

constexpr WorkerId ann{0};
constexpr WorkerId bob{1};

/// Ann and Bob have both done a step in no time; now both have another. Nobody is ever silent.
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

TEST(Watching, WhoTakesTooLongIsExpelledAndItsLeaseReturned) {
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
  EXPECT_EQ(h.sent<wire::Fenced>().size(), 1U) << "when it moves again it comes as somebody new";
  EXPECT_EQ(h.sent<wire::Forget>().size(), 2U) << "by each server";
  EXPECT_EQ(h.ordered(), std::vector<WorkerId>{ann}) << "who need wait no longer";
  while (!h.chief.finished()) h.finish(ann);
  EXPECT_TRUE(h.chief.ledger().complete());
}

TEST(Watching, WhoSaysThatItIsDoneAndDeliversNothingIsExpelledToo) {
  ChiefDriver h = at_work();
  h.finish(ann);
  h.say_contributed(bob);
  h.tick_at(16);
  answer_probes(h);
  h.tick_at(31);
  ASSERT_EQ(h.recorded<Left>().size(), 1U);
  EXPECT_TRUE(h.recorded<Left>()[0].stuck->computed);
}

/// Those whose numbers are not finite wait for its word on whether the model is at fault, but not for ever.
TEST(Watching, ADivergenceIsCalledWhenWhoHasYetToSpeakHangs) {
  for (const std::string strategy : {"bsp", "asp", "ssp"}) {
    SCOPED_TRACE(strategy);
    ChiefDriver h = at_work(strategy);
    const std::uint32_t enough = small_job().refusals_in_a_row;
    for (std::uint32_t i = 0; i < 2 * enough && h.orders.contains(ann); ++i) h.finish(ann, false);
    EXPECT_FALSE(h.chief.finished()) << "Bob's step may tell whose fault it is";
    h.tick_at(16);
    answer_probes(h);
    if (h.orders.contains(ann)) h.finish(ann, false);  // it does not hang
    h.tick_at(31);
    for (std::uint32_t i = 0; i < enough && !h.chief.finished(); ++i) {
      ASSERT_TRUE(h.orders.contains(ann)) << "nobody else is left";
      h.finish(ann, false);
    }
    EXPECT_TRUE(h.chief.finished());
    ASSERT_EQ(h.recorded<Finished>().size(), 1U);
    EXPECT_EQ(h.recorded<Finished>()[0].why, EndReason::diverged);
  }
}

TEST(Watching, WhoHasNothingToDoIsNotWaitedFor) {
  ChiefDriver h = at_work();
  h.finish(ann);  // and waits for Bob at the barrier
  h.tick_at(20);
  answer_probes(h);
  h.finish(bob);
  h.tick_at(49);
  answer_probes(h);
  EXPECT_TRUE(h.recorded<Left>().empty());
}

TEST(Watching, AServerThatOwesASignOfLifeIsToBlameAndNobodyElse) {
  ChiefDriver h = at_work();
  h.tick_at(15);
  EXPECT_TRUE(h.sent<wire::Probe>().empty()) << "nobody has waited for long";
  h.tick_at(16);
  ASSERT_EQ(h.sent<wire::Probe>().size(), 2U);
  h.step(Received{peer(ServerId{0}), wire::Probe{ServerId{0}}});
  h.step(Received{peer(ServerId{0}), wire::Probe{ServerId{1}}});  // not for another
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

TEST(Watching, AServerThatOwesTheLastModelIsFound) {
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

TEST(Watching, WhoeverIsWaitedForWhileTheChiefStoodStillIsNotToBlame) {
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

TEST(Watching, WithoutTheWordThatItStoodStillTheChiefWouldExpelAll) {
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
