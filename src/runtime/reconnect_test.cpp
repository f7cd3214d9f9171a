// When to try again, and when to end: on a clock that the test turns.
#include "runtime/reconnect.h"

#include <gtest/gtest.h>

namespace motley::runtime {
namespace {

using namespace std::chrono_literals;

const Error nobody = world_failed("nobody answers"), not_ours = peer_broken("something else answers"), proven_no = bad_input("another job");

class Policy : public testing::Test {
 protected:
  ReconnectPolicy policy{ReconnectOptions{}, "127.0.0.1:7000", Rng(0, "worker")};
  Instant now{};

  /// Loses again and again, for the same reason, until it ends.
  Error lose_to_the_end(const Error& why) {
    for (;;) {
      const Result<Duration> pause = policy.lost(now, why);
      if (!pause) return pause.error();
      now += *pause;
    }
  }
};

TEST_F(Policy, PausesGrowToTheirCapAndAreDrawnFromTheirUpperHalf) {
  for (const double whole : {0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0}) {
    const Result<Duration> pause = policy.lost(now, nobody);
    ASSERT_TRUE(pause);
    EXPECT_GE(seconds(*pause), whole / 2);
    EXPECT_LE(seconds(*pause), whole);
  }
}

TEST_F(Policy, WorkersDrawUnlikePausesAndTheSameEachTime) {
  const auto pauses = [](std::string_view name) {
    ReconnectPolicy one(ReconnectOptions{}, "127.0.0.1:7000", Rng(0, name));
    std::vector<Duration> drawn;
    for (int i = 0; i < 8; ++i) drawn.push_back(*one.lost(Instant{}, nobody));
    return drawn;
  };
  EXPECT_EQ(pauses("a"), pauses("a"));
  EXPECT_NE(pauses("a"), pauses("b"));
}

TEST_F(Policy, AMemberPassesOverRefusalsWithoutAProofUntilItsPatienceEnds) {
  policy.proven();
  const Error end = lose_to_the_end(not_ours);
  EXPECT_EQ(end.next, Next::give_up);
  EXPECT_NE(end.message.find("no chief at 127.0.0.1:7000 for 12"), std::string::npos) << end.message;
  EXPECT_NE(end.message.find("something else answers"), std::string::npos) << end.message;
  EXPECT_GT(now, Instant{120s});
}

TEST_F(Policy, ANewcomerThatIsRefusedEndsAfterItsFirstContact) {
  const Error end = lose_to_the_end(not_ours);
  EXPECT_EQ(end.next, Next::tell_user);
  EXPECT_EQ(end.message, "something else answers");
  EXPECT_GE(now, Instant{10s});
  EXPECT_LT(now, Instant{20s});
}

TEST_F(Policy, ANewcomerThatWaitsForItsChiefIsNotEndedByOneRefusal) {
  while (now < Instant{60s}) now += *policy.lost(now, nobody);
  EXPECT_TRUE(policy.lost(now, not_ours));
  EXPECT_TRUE(policy.lost(now + 9s, nobody));
  EXPECT_TRUE(policy.lost(now + 18s, not_ours));
  EXPECT_FALSE(policy.lost(now + 28s, not_ours));
}

TEST_F(Policy, AProvenRefusalEndsEverybodyAtOnce) {
  policy.proven();
  const Result<Duration> pause = policy.lost(now, proven_no);
  ASSERT_FALSE(pause);
  EXPECT_EQ(pause.error().next, Next::tell_user);
}

TEST_F(Policy, PatienceAndPausesBeginAnewOnceAllIsWell) {
  policy.proven();
  for (int i = 0; i < 10; ++i) now += *policy.lost(now, nobody);
  policy.settled();
  now += 1000s;
  const Result<Duration> pause = policy.lost(now, nobody);
  ASSERT_TRUE(pause);
  EXPECT_LE(*pause, Duration{100ms});
}

TEST_F(Policy, NoPatienceEndsANewcomersFirstContactEarlier) {
  policy = ReconnectPolicy({.patience = 1s}, "127.0.0.1:7000", Rng(0, "worker"));
  EXPECT_EQ(lose_to_the_end(not_ours).next, Next::tell_user);
  EXPECT_LT(now, Instant{3s});
}

}  // namespace
}  // namespace motley::runtime
