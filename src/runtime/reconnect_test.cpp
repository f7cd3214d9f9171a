// The pauses between attempts to reconnect, and when they end. The test sets the time.
#include "runtime/reconnect.h"

#include <gtest/gtest.h>

namespace motley::runtime {
namespace {

using namespace std::chrono_literals;

const Error no_answer = world_failed("no answer"), not_ours = peer_broken("another program answers"), proven_no = bad_input("another job");

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

TEST_F(Policy, Pauses_double_to_a_limit_and_are_jittered) {
  for (const double whole : {0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0}) {
    const Result<Duration> pause = policy.lost(now, no_answer);
    ASSERT_TRUE(pause);
    EXPECT_GE(seconds(*pause), whole / 2);
    EXPECT_LE(seconds(*pause), whole);
  }
}

TEST_F(Policy, Pauses_depend_on_the_name_and_are_reproducible) {
  const auto pauses = [](std::string_view name) {
    ReconnectPolicy one(ReconnectOptions{}, "127.0.0.1:7000", Rng(0, name));
    std::vector<Duration> drawn;
    for (int i = 0; i < 8; ++i) drawn.push_back(*one.lost(Instant{}, no_answer));
    return drawn;
  };
  EXPECT_EQ(pauses("a"), pauses("a"));
  EXPECT_NE(pauses("a"), pauses("b"));
}

TEST_F(Policy, A_member_ignores_unproven_refusals_until_patience_ends) {
  policy.proven();
  const Error end = lose_to_the_end(not_ours);
  EXPECT_EQ(end.next, Next::give_up);
  EXPECT_NE(end.message.find("no chief at 127.0.0.1:7000 for 12"), std::string::npos) << end.message;
  EXPECT_NE(end.message.find("another program answers"), std::string::npos) << end.message;
  EXPECT_GT(now, Instant{120s});
}

TEST_F(Policy, A_new_process_that_is_refused_ends_after_first_contact) {
  const Error end = lose_to_the_end(not_ours);
  EXPECT_EQ(end.next, Next::tell_user);
  EXPECT_EQ(end.message, "another program answers");
  EXPECT_GE(now, Instant{10s});
  EXPECT_LT(now, Instant{20s});
}

TEST_F(Policy, One_refusal_does_not_end_a_process_that_waits) {
  while (now < Instant{60s}) now += *policy.lost(now, no_answer);
  EXPECT_TRUE(policy.lost(now, not_ours));
  EXPECT_TRUE(policy.lost(now + 9s, no_answer));
  EXPECT_TRUE(policy.lost(now + 18s, not_ours));
  EXPECT_FALSE(policy.lost(now + 28s, not_ours));
}

TEST_F(Policy, A_proven_refusal_ends_every_process_at_once) {
  policy.proven();
  const Result<Duration> pause = policy.lost(now, proven_no);
  ASSERT_FALSE(pause);
  EXPECT_EQ(pause.error().next, Next::tell_user);
}

TEST_F(Policy, Patience_and_pauses_restart_once_settled) {
  policy.proven();
  for (int i = 0; i < 10; ++i) now += *policy.lost(now, no_answer);
  policy.settled();
  now += 1000s;
  const Result<Duration> pause = policy.lost(now, no_answer);
  ASSERT_TRUE(pause);
  EXPECT_LE(*pause, Duration{100ms});
}

TEST_F(Policy, Short_patience_shortens_the_first_contact) {
  policy = ReconnectPolicy({.patience = 1s}, "127.0.0.1:7000", Rng(0, "worker"));
  EXPECT_EQ(lose_to_the_end(not_ours).next, Next::tell_user);
  EXPECT_LT(now, Instant{3s});
}

}  // namespace
}  // namespace motley::runtime
