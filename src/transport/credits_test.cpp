// Credits: the sender stays within the window, the receiver notices a sender that does not, and no payload waits for ever.
#include "transport/credits.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "base/rng.h"

namespace motley::transport {
namespace {

SendCredits opened(std::uint64_t window) {
  SendCredits credits;
  EXPECT_TRUE(credits.grant(window));
  return credits;
}

TEST(Credits, Sends_nothing_before_the_first_grant) { EXPECT_FALSE(SendCredits{}.covers(1)); }

TEST(Credits, Refuses_an_empty_first_grant) { EXPECT_FALSE(SendCredits{}.grant(0)); }

TEST(Credits, Window_fills_and_empties) {
  SendCredits credits = opened(100);
  credits.spend(60);
  EXPECT_TRUE(credits.covers(40));
  EXPECT_FALSE(credits.covers(41));
  EXPECT_THROW(credits.spend(41), Bug);
  EXPECT_TRUE(credits.grant(20));
  EXPECT_TRUE(credits.covers(60));
}

TEST(Credits, Payload_larger_than_the_window_is_sent_alone) {
  SendCredits credits = opened(100);
  credits.spend(1);
  EXPECT_FALSE(credits.covers(1'000));
  EXPECT_TRUE(credits.grant(1));
  credits.spend(1'000);
  EXPECT_FALSE(credits.covers(0));
  EXPECT_TRUE(credits.grant(1'000));
  EXPECT_TRUE(credits.covers(1'000));
}

TEST(Credits, Refuses_a_grant_beyond_the_bytes_in_flight) {
  SendCredits credits = opened(100);
  credits.spend(10);
  EXPECT_FALSE(credits.grant(11));
}

TEST(Credits, Receiver_refuses_a_payload_beyond_the_window) {
  ReceiveCredits credits(100);
  EXPECT_TRUE(credits.announce(100));
  EXPECT_FALSE(credits.announce(1));
}

TEST(Credits, Grants_held_bytes_after_the_hold_only) {
  ReceiveCredits credits(100);
  EXPECT_TRUE(credits.announce(70));
  credits.hold(true);
  credits.arrived(70);
  EXPECT_EQ(credits.collect(), 0U);
  EXPECT_FALSE(credits.announce(31));
  credits.hold(false);
  EXPECT_EQ(credits.collect(), 70U);
  EXPECT_TRUE(credits.announce(100));
}

TEST(Credits, Any_traffic_within_the_rule_flows) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed, "credits");
    SendCredits sender = opened(1'000);
    ReceiveCredits receiver(1'000);
    for (int i = 0; i < 200; ++i) {
      const std::size_t bytes = rng.below(1'500);
      if (!sender.covers(bytes)) {
        ASSERT_TRUE(sender.grant(receiver.collect()));
      }
      ASSERT_TRUE(sender.covers(bytes)) << "all bytes are granted, yet " << bytes << " bytes wait";
      sender.spend(bytes);
      ASSERT_TRUE(receiver.announce(bytes));
      receiver.arrived(bytes);
    }
  }
}

}  // namespace
}  // namespace motley::transport
